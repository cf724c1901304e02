// The C interface: dabnet.h over what is in the other files.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "dabnet.h"
#include "drawings.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/text.h"
#include "picture/picture.h"
#include "plan/build.h"
#include "rank.h"
#include "raster.h"
#include "values.h"

using dabnet::Problem;

struct dabnet_model {
    dabnet::Shape input;
    std::vector<std::string> labels;
    bool has_raster;
    dabnet::Raster raster;
    double temperature;
    double views_temperature;
    const dabnet::Kernels* kernels;
    int threads;
    std::vector<std::string> steps;
    std::unique_ptr<dabnet::Network> network;

    std::size_t input_count() const { return static_cast<std::size_t>(input.count()); }
};

namespace {

constexpr std::uint64_t kMaxMemory = std::uint64_t{256} << 20;
constexpr double kMaxWork = 20e9;
constexpr int kMostThreads = 1024;

dabnet_status report(const Problem& problem, char* error, std::size_t error_size) {
    if (error != nullptr && error_size != 0) {
        const std::size_t length = std::min(problem.sentence.size(), error_size - 1);
        std::memcpy(error, problem.sentence.data(), length);
        error[length] = 0;
    }
    return problem.status;
}

dabnet_status report(dabnet_status status, std::string sentence, char* error, std::size_t error_size) {
    return report(Problem{status, std::move(sentence)}, error, error_size);
}

// A text for dabnet_free.
char* copy_of(const std::string& text) {
    char* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

// Writes JSON, its commas where they belong.
class JsonWriter {
   public:
    JsonWriter& key(const char* name) {
        separate();
        text_ += std::string("\"") + name + "\":";
        needs_comma_ = false;
        return *this;
    }
    void open(char bracket) {
        separate();
        text_ += bracket;
        needs_comma_ = false;
    }
    void close(char bracket) {
        text_ += bracket;
        needs_comma_ = true;
    }
    void number(std::uint64_t value) { raw(std::to_string(value)); }
    void number(double value) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.17g", value);
        for (char* c = digits; *c != 0; ++c) {
            if (*c == ',') *c = '.';  // whatever the host's locale
        }
        raw(digits);
    }
    void text(const std::string& value) {
        std::string quoted = "\"";
        for (const char c : value) {
            if (static_cast<unsigned char>(c) < 0x20) {
                char escape[8];
                std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
                quoted += escape;
            } else {
                if (c == '"' || c == '\\') quoted += '\\';
                quoted += c;
            }
        }
        raw(quoted + '"');
    }
    void raw(const std::string& value) {
        separate();
        text_ += value;
    }
    const std::string& done() const { return text_; }

   private:
    void separate() {
        if (needs_comma_) text_ += ',';
        needs_comma_ = true;
    }
    std::string text_;
    bool needs_comma_ = false;
};

void write_shape(JsonWriter& json, const dabnet::Shape& shape) {
    json.open('[');
    for (const std::size_t side : {shape.channels, shape.height, shape.width}) json.number(std::uint64_t{side});
    json.text(name_of(shape.type));
    json.close(']');
}

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
    json.open('[');
    for (const std::string& text : texts) json.text(text);
    json.close(']');
}

// What an image and its answer take.
std::uint64_t bytes_per_image(const dabnet_model& model) {
    return (model.input.count() + model.network->answers()) * sizeof(float);
}

bool check_options(const dabnet_options& options, const dabnet::Kernels*& kernels, Problem& problem) {
    if (options.threads < 1 || options.threads > kMostThreads) {
        return problem.fail(DABNET_BAD_ARGUMENT, "a model runs on 1 to " + std::to_string(kMostThreads) +
                                                     " threads, not " + std::to_string(options.threads) + ".");
    }
    kernels = dabnet::find_kernels(options.kernels);
    if (kernels != nullptr) return true;
    return problem.fail(DABNET_BAD_ARGUMENT,
                        "there are no kernels " + dabnet::quoted(dabnet::cut(options.kernels, 40)) + " that run here.");
}

bool open_model(const std::uint8_t* bytes, std::size_t size, const dabnet_options& options, dabnet_model& model,
                Problem& problem) {
    if (!check_options(options, model.kernels, problem)) return false;
    dabnet::Model read;
    if (!read_model(bytes, size, read, problem)) return false;
    const dabnet::Plan plan = make_plan(read);
    model.network = build_network(plan, *model.kernels, options.threads, options.max_memory, model.steps);
    model.input = read.shapes[0];
    if (model.network == nullptr || !model.network->budget().has_room(bytes_per_image(model))) {
        return problem.fail(DABNET_TOO_LARGE, "the model takes more than " + dabnet::grouped(options.max_memory) +
                                                  " bytes of memory: raise max_memory if you trust it.");
    }
    if (!(model.network->work() <= options.max_work)) {  // NaN included
        const auto billions = [](double work) {
            char digits[32];
            std::snprintf(digits, sizeof digits, "%.4g", work / 1e9);
            return std::string(digits);
        };
        return problem.fail(DABNET_TOO_MUCH_WORK, "the model takes " + billions(model.network->work()) +
                                                      " billion multiply-adds for one drawing, and may take " +
                                                      billions(options.max_work) + ": raise max_work if you trust it.");
    }
    model.labels = std::move(read.labels);
    model.has_raster = read.has_raster;
    model.raster = read.raster;
    model.temperature = read.temperature;
    model.views_temperature = read.views_temperature;
    model.threads = options.threads;
    return true;
}

// Whether sketches can be drawn for a model.
bool check_raster(const dabnet_model& model, Problem& problem) {
    if (!model.has_raster) {
        return problem.fail(DABNET_BAD_MODEL,
                            "the model does not say how to draw a sketch for it: export it with a raster.");
    }
    const auto& [size, margin, pen] = model.raster;
    if (size < 8 || size > dabnet::kLargestRaster || !(margin >= 0 && margin <= 0.4) ||
        !(pen >= 0.001 && pen <= dabnet::kWidestPen)) {
        return problem.fail(DABNET_BAD_MODEL, "the model's rasterizer settings make no sense: export it again.");
    }
    if (model.input == dabnet::Shape{1, size, size}) return true;
    const std::string side = std::to_string(size);
    return problem.fail(DABNET_BAD_MODEL, "the model takes " + std::to_string(model.input.channels) + "x" +
                                              std::to_string(model.input.height) + "x" +
                                              std::to_string(model.input.width) + ", and sketches are drawn 1x" + side +
                                              "x" + side + ": export it again.");
}

bool check_strokes(const float* points, const std::int64_t* ends, std::size_t strokes, Problem& problem) {
    const auto refuse = [&](const char* sentence) { return problem.fail(DABNET_BAD_INPUT, sentence); };
    if (strokes == 0) return refuse("the drawing has no ink: it needs at least one stroke.");
    std::int64_t before = 0;
    for (std::size_t i = 0; i < strokes; ++i) {
        if (ends[i] <= before) {
            return refuse("the drawing's strokes must end one after another, the last at the last point.");
        }
        before = ends[i];
    }
    if (before > dabnet::kMostPoints) {
        return problem.fail(DABNET_BAD_INPUT, "the drawing has " + dabnet::grouped(static_cast<std::uint64_t>(before)) +
                                                  " points, more than " + dabnet::grouped(dabnet::kMostPoints) +
                                                  ": simplify its strokes first.");
    }
    const auto count = static_cast<std::size_t>(before);
    if (!dabnet::are_finite(points, 2 * count)) {
        return refuse("the drawing has a coordinate that is not a finite number: remove that point.");
    }
    for (std::size_t i = 1; i < count; ++i) {
        if (points[2 * i] != points[0] || points[2 * i + 1] != points[1]) return true;
    }
    return refuse("the drawing is a single point: it needs at least two different ones.");
}

// Whether the ends of strokes and of drawings follow one another, up to the last.
bool check_batch(const dabnet_strokes& all, Problem& problem) {
    const auto are_ends = [](const std::int64_t* ends, std::size_t count, std::size_t last) {
        std::int64_t before = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (ends[i] < before) return false;
            before = ends[i];
        }
        return static_cast<std::uint64_t>(before) == last;
    };
    return (are_ends(all.stroke_ends, all.stroke_count, all.point_count) &&
            are_ends(all.drawing_ends, all.drawing_count, all.stroke_count)) ||
           problem.fail(DABNET_BAD_ARGUMENT, "strokes and drawings must end one after another, the last at the end.");
}

// The strokes of one of many drawings, empty ones left out.
const float* strokes_of(const dabnet_strokes& all, std::size_t i, std::vector<std::int64_t>& ends) {
    const std::int64_t first = i == 0 ? 0 : all.drawing_ends[i - 1];
    const std::int64_t point = first == 0 ? 0 : all.stroke_ends[first - 1];
    for (std::int64_t stroke = first; stroke < all.drawing_ends[i]; ++stroke) {
        const std::int64_t end = all.stroke_ends[stroke] - point;
        if (end != (ends.empty() ? 0 : ends.back())) ends.push_back(end);
    }
    return all.points + 2 * point;
}

dabnet_status report_run(dabnet_status status, char* error, std::size_t error_size) {
    switch (status) {
        case DABNET_OK:
            return status;
        case DABNET_CANCELLED:
            return report(status, "the run was cancelled.", error, error_size);
        case DABNET_NOT_FINITE:
            return report(
                status,
                "the model answered with a number that is not finite: its weights are too large, export it again.",
                error, error_size);
        default:
            return report(status, "there is no memory left to run the model.", error, error_size);
    }
}

// Grey pixels, 0 to 255, as a network takes them.
void to_image(const std::vector<std::uint8_t>& pixels, float* image) {
    for (std::size_t i = 0; i < pixels.size(); ++i) image[i] = static_cast<float>(pixels[i]) / 255.0f;
}

}  // namespace

uint32_t dabnet_abi_version(void) { return DABNET_ABI_VERSION; }

void dabnet_default_options(dabnet_options* options) { *options = {sizeof *options, 1, kMaxMemory, kMaxWork, nullptr}; }

const char* dabnet_kernels(size_t i) {
    for (const dabnet::Kernels* const* kernels = dabnet::kAllKernels; *kernels != nullptr; ++kernels) {
        if ((*kernels)->runs_here() && i-- == 0) return (*kernels)->name;
    }
    return nullptr;
}

dabnet_status dabnet_open(const void* bytes, size_t size, const dabnet_options* options, dabnet_model** model,
                          char* error, size_t error_size) {
    dabnet_options chosen;
    dabnet_default_options(&chosen);
    if (model == nullptr || (bytes == nullptr && size != 0) ||
        (options != nullptr && options->struct_size != sizeof *options)) {
        return report(DABNET_BAD_ARGUMENT,
                      "dabnet_open takes bytes, options of its own version, and where to put a model.", error,
                      error_size);
    }
    if (options != nullptr) chosen = *options;
    *model = nullptr;
    Problem problem;
    auto opened = std::make_unique<dabnet_model>();
    if (!open_model(static_cast<const std::uint8_t*>(bytes), size, chosen, *opened, problem)) {
        return report(problem, error, error_size);
    }
    *model = opened.release();
    return DABNET_OK;
}

void dabnet_close(dabnet_model* model) { delete model; }

dabnet_status dabnet_inspect(const void* bytes, size_t size, char** json, char* error, size_t error_size) {
    Problem problem;
    if (json == nullptr || (bytes == nullptr && size != 0)) {
        problem.fail(DABNET_BAD_ARGUMENT, "dabnet_inspect takes the bytes of a model, and where to put a text.");
        return report(problem, error, error_size);
    }
    *json = nullptr;
    dabnet::Model model;
    if (!read_model(static_cast<const std::uint8_t*>(bytes), size, model, problem)) {
        return report(problem, error, error_size);
    }
    JsonWriter writer;
    writer.open('{');
    writer.key("shapes").open('[');
    for (const dabnet::Shape& shape : model.shapes) write_shape(writer, shape);
    writer.close(']');
    writer.close('}');
    *json = copy_of(writer.done());
    return *json == nullptr ? DABNET_NO_MEMORY : DABNET_OK;
}

dabnet_status dabnet_about(const dabnet_model* model, char** json) {
    const dabnet::Network& network = *model->network;
    JsonWriter writer;
    writer.open('{');
    write_shape(writer.key("input"), model->input);
    writer.key("answers").number(std::uint64_t{network.answers()});
    write_texts(writer.key("labels"), model->labels);
    writer.key("raster");
    if (model->has_raster) {
        writer.open('{');
        writer.key("size").number(std::uint64_t{model->raster.size});
        writer.key("margin").number(model->raster.margin);
        writer.key("pen").number(model->raster.pen);
        writer.close('}');
    } else {
        writer.raw("null");
    }
    writer.key("temperature").number(model->temperature);
    writer.key("views_temperature").number(model->views_temperature);
    write_texts(writer.key("steps"), model->steps);
    writer.key("kernels").text(model->kernels->name);
    writer.key("threads").number(static_cast<std::uint64_t>(model->threads));
    writer.key("memory").number(network.memory());
    writer.key("work").number(network.work());
    const std::uint64_t left = network.budget().limit() - network.budget().taken();
    writer.key("batch").number(std::max<std::uint64_t>(left / bytes_per_image(*model), 1));
    writer.close('}');
    *json = copy_of(writer.done());
    return *json == nullptr ? DABNET_NO_MEMORY : DABNET_OK;
}

void dabnet_free(char* text) { std::free(text); }

size_t dabnet_input_count(const dabnet_model* model) { return model->input_count(); }
size_t dabnet_answer_count(const dabnet_model* model) { return model->network->answers(); }

const char* dabnet_label(const dabnet_model* model, size_t i) {
    return i < model->labels.size() ? model->labels[i].c_str() : nullptr;
}

dabnet_status dabnet_run(const dabnet_model* model, const float* images, size_t batch, float* logits,
                         dabnet_should_stop should_stop, void* context, char* error, size_t error_size) {
    if (!dabnet::are_finite(images, batch * model->input_count())) {
        return report(DABNET_BAD_INPUT, "a sketch holds a NaN or an infinite number: ink is 1.0, and paper 0.0.", error,
                      error_size);
    }
    dabnet::Stop stop(should_stop, context);
    const dabnet_status status = model->network->run(images, batch, logits, stop);
    const bool is_bad = status == DABNET_OK && !dabnet::are_finite(logits, batch * model->network->answers());
    return report_run(is_bad ? DABNET_NOT_FINITE : status, error, error_size);
}

dabnet_status dabnet_time_steps(const dabnet_model* model, const float* image, double* seconds, char* error,
                                size_t error_size) {
    std::vector<float> answers(model->network->answers());
    return report_run(model->network->time_steps(image, answers.data(), seconds), error, error_size);
}

dabnet_status dabnet_draw_strokes(const dabnet_model* model, const float* points, const int64_t* ends, size_t strokes,
                                  float* image, char* error, size_t error_size) {
    Problem problem;
    if (!check_raster(*model, problem) || !check_strokes(points, ends, strokes, problem)) {
        return report(problem, error, error_size);
    }
    std::vector<std::uint8_t> pixels(model->input_count());
    dabnet::rasterize_strokes(points, ends, strokes, model->raster, pixels.data());
    to_image(pixels, image);
    return DABNET_OK;
}

dabnet_status dabnet_draw_bitmap(const dabnet_model* model, const uint8_t* bitmap, double line_width, float* image,
                                 char* error, size_t error_size) {
    Problem problem;
    if (!check_raster(*model, problem)) return report(problem, error, error_size);
    if (line_width == 0) line_width = static_cast<float>(dabnet::measure_line_width(bitmap));
    std::vector<std::uint8_t> pixels(model->input_count());
    const bool is_sane = line_width > 0 && line_width <= static_cast<double>(dabnet::kGrid);
    if (!is_sane || !dabnet::rasterize_bitmap(bitmap, line_width, model->raster, pixels.data())) {
        return report(DABNET_BAD_INPUT, "the image has no ink: there is nothing on the paper.", error, error_size);
    }
    to_image(pixels, image);
    return DABNET_OK;
}

dabnet_status dabnet_draw_picture(const dabnet_model* model, const uint8_t* pixels, size_t width, size_t height,
                                  size_t channels, float* image, char* error, size_t error_size) {
    if (width == 0 || height == 0 || width > dabnet::kMostPixels / height ||
        (channels != 1 && channels != 3 && channels != 4)) {
        return report(DABNET_BAD_INPUT,
                      "a picture has 1 to " + dabnet::grouped(dabnet::kMostPixels) + " pixels of 1, 3 or 4 channels.",
                      error, error_size);
    }
    Problem problem;
    if (!check_raster(*model, problem)) return report(problem, error, error_size);
    std::vector<std::uint8_t> bitmap(dabnet::kGrid * dabnet::kGrid / 2);  // stays blank where there is no ink
    dabnet::find_ink({pixels, width, height, channels}, bitmap.data());
    return dabnet_draw_bitmap(model, bitmap.data(), 0, image, error, error_size);
}

dabnet_status dabnet_rank(const dabnet_model* model, const float* logits, size_t top, size_t* labels,
                          double* probabilities, size_t* found) {
    const auto chances = dabnet::probabilities(logits, model->network->answers(), model->temperature);
    const auto order = dabnet::rank(chances, top);
    for (std::size_t i = 0; i < order.size(); ++i) {
        labels[i] = order[i];
        probabilities[i] = chances[order[i]];
    }
    *found = order.size();
    return DABNET_OK;
}

dabnet_status dabnet_recognize_strokes(const dabnet_model* model, const float* points, const int64_t* ends,
                                       size_t strokes, size_t top, size_t* labels, double* probabilities, size_t* found,
                                       char* error, size_t error_size) {
    std::vector<float> image(model->input_count()), logits(model->network->answers());
    dabnet_status status = dabnet_draw_strokes(model, points, ends, strokes, image.data(), error, error_size);
    if (status != DABNET_OK) return status;
    status = dabnet_run(model, image.data(), 1, logits.data(), nullptr, nullptr, error, error_size);
    return status == DABNET_OK ? dabnet_rank(model, logits.data(), top, labels, probabilities, found) : status;
}

dabnet_status dabnet_recognize_batch(const dabnet_model* model, const dabnet_strokes* strokes, size_t top,
                                     size_t* labels, double* probabilities, dabnet_status* statuses,
                                     dabnet_should_stop should_stop, void* context, char* error, size_t error_size) {
    Problem problem;
    if (!check_raster(*model, problem) || !check_batch(*strokes, problem)) return report(problem, error, error_size);
    const auto draw = [&](std::size_t i, float* image) {
        std::vector<std::int64_t> ends;
        const float* points = strokes_of(*strokes, i, ends);
        statuses[i] = dabnet_draw_strokes(model, points, ends.data(), ends.size(), image, nullptr, 0);
        return statuses[i] == DABNET_OK;
    };
    std::atomic<bool> are_finite{true};
    const auto take = [&](std::size_t i, const float* logits) {
        if (!dabnet::are_finite(logits, model->network->answers())) are_finite = false;
        std::size_t found = 0;
        dabnet_rank(model, logits, top, labels + i * top, probabilities + i * top, &found);
    };
    dabnet::Stop stop(should_stop, context);
    const dabnet_status status = model->network->run_drawn(strokes->drawing_count, draw, take, stop);
    return report_run(status == DABNET_OK && !are_finite ? DABNET_NOT_FINITE : status, error, error_size);
}
