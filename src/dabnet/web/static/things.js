// Things that most people can draw in a few strokes, by the names that models have for them.

const EASY = new Set(
  `airplane, alarm clock, ant, apple, axe, backpack, banana, basket, bed, bell, bicycle, book, bowl, bread, bridge, bus,
  butterfly, cactus, cake, camera, candle, car, carrot, castle, cat, chair, church, clock, cloud, comb, crab, crown, cup,
  diamond, donut, door, ear, elephant, envelope, eye, eyeglasses, face, fish, flower, flower with stem, fork, giraffe,
  grapes, guitar, hamburger, hammer, hand, hat, headphones, head phones, helicopter, hot air balloon, hot dog, hourglass,
  house, ice cream, ice cream cone, key, knife, ladder, laptop, leaf, light bulb, lightbulb, lightning, lollipop, moon, mouth,
  mug, mushroom, octopus, owl, palm tree, pants, pear, pencil, penguin, pineapple, pizza, pumpkin, rabbit, rainbow, sailboat,
  scissors, shark, shoe, skull, smiley face, snail, snake, snowflake, snowman, sock, socks, spider, spoon, stairs, star,
  strawberry, submarine, sun, swan, sword, t shirt, table, teapot, television, tent, toothbrush, traffic light, tree,
  triangle, trousers, tv, umbrella, vase, wheel, windmill, wine bottle, wine glass, wineglass, wrist watch, wristwatch`
    .split(",")
    .map((name) => name.trim().replace(/\s+/g, " ")),
);

const plain = (label) => label.toLowerCase().replace(/\(.*\)/, "").replaceAll(/[-_]/g, " ").trim();

// Returns the labels that people can draw; all of them, if a model knows too few of the usual things.
export function drawable(labels, least) {
  const easy = labels.filter((label) => EASY.has(plain(label)));
  return easy.length >= least ? easy : labels;
}

// Returns some of a list, each once, in any order.
export function pick(list, count) {
  const left = [...list];
  return Array.from({ length: Math.min(count, left.length) }, () => {
    const i = Math.floor(Math.random() * left.length);
    return left.splice(i, 1)[0];
  });
}
