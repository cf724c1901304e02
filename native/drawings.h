// Many drawings' strokes in three arrays, as Arrow keeps lists of lists, and how lines of JSON become such.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dabnet {

constexpr std::int64_t kMostPoints = 32768;  // of a drawing: no hand draws more, and nobody should wait long

struct Drawings {
    std::vector<float> points;               // x, y of all strokes in turn, y downwards, at any scale
    std::vector<std::int64_t> stroke_ends;   // stroke i ends before point stroke_ends[i]
    std::vector<std::int64_t> drawing_ends;  // drawing i ends before stroke drawing_ends[i]

    std::size_t size() const { return drawing_ends.size(); }
    std::size_t first_stroke(std::size_t i) const { return i == 0 ? 0 : static_cast<std::size_t>(drawing_ends[i - 1]); }
    std::size_t first_point(std::size_t i) const {
        const std::size_t stroke = first_stroke(i);
        return stroke == 0 ? 0 : static_cast<std::size_t>(stroke_ends[stroke - 1]);
    }

    // Ends the drawing that was begun: `points` and `stroke_ends` have grown since the last one. False, and nothing is
    // left of it, if it has no ink, is a single point or has too many.
    bool end_drawing();
    // Removes the drawing that was begun.
    void drop_drawing();
    void append(const Drawings& others);
};

// Appends a drawing written as JSON: strokes [[[x, y], ...], ...], an object with these as its "strokes", or Quick,
// Draw!'s object with "drawing" [[[x, ...], [y, ...]], ...], all numbers finite. Returns false, and appends nothing,
// for whatever else the text may be: a slower reader has to look at it, and says what is wrong.
bool read_drawing(std::string_view json, Drawings& drawings);

// A line that is not blank.
struct Line {
    std::size_t number;    // from 0
    std::size_t from, to;  // in the text, without the line's end
    bool is_read;          // and is the next of the drawings
};

// Reads the drawings of a text, one per line, on so many threads. Returns how many lines it has.
std::size_t read_lines(std::string_view text, int threads, Drawings& drawings, std::vector<Line>& lines);

}  // namespace dabnet
