#include "model.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../dabnet.h"
#include "../drawings.h"
#include "../rank.h"
#include "arrays.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Clock = std::chrono::steady_clock;
using Images = Array<const float, nb::ndim<4>, nb::c_contig>;

constexpr int kTimeLimit = -1;  // beside the statuses of dabnet.h: the run took longer than it was given
PyObject* core_error = nullptr;

[[noreturn]] void raise(int status, const char* sentence) {
    const nb::object text =
        nb::steal(PyUnicode_DecodeUTF8(sentence, static_cast<Py_ssize_t>(std::strlen(sentence)), "replace"));
    PyErr_SetObject(core_error, nb::make_tuple(status, text).ptr());
    throw nb::python_error();
}

// A sentence of the core's. It may quote a layer's name, escaped.
struct Sentence {
    char text[16384] = "";
    static constexpr std::size_t kSize = sizeof text;
};

std::string take_text(char* text) {
    std::string copy(text);
    dabnet_free(text);
    return copy;
}

// Lets other threads stop runs.
class Cancel {
   public:
    void cancel() { is_cancelled_ = true; }
    bool is_cancelled() const { return is_cancelled_; }

   private:
    std::atomic<bool> is_cancelled_{false};
};

// What may end a run: the caller, the clock, or a signal, which only Python's main thread hears.
struct Control {
    const Cancel* cancel;
    Clock::time_point deadline;
    bool hears_signals;
    Clock::time_point next_signal = Clock::now() + kSignals;
    bool is_late = false, is_interrupted = false;

    static constexpr std::chrono::milliseconds kSignals{20};

    Control(const Cancel* by, std::optional<double> seconds, bool hears)
        : cancel(by), deadline(Clock::time_point::max()), hears_signals(hears) {
        constexpr double kForever = 1e9;  // seconds that a clock can count
        if (seconds && *seconds < kForever) {
            deadline =
                Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*seconds));
        }
    }

    // Raises what ended a run.
    void check(dabnet_status status, const char* sentence) const {
        if (is_interrupted) throw nb::python_error();
        if (status != DABNET_OK) raise(is_late ? kTimeLimit : status, sentence);
    }

    static int should_stop(void* context) {
        auto& control = *static_cast<Control*>(context);
        const auto now = Clock::now();
        if (control.cancel != nullptr && control.cancel->is_cancelled()) return 1;
        if (now >= control.deadline) {
            control.is_late = true;
            return 1;
        }
        if (!control.hears_signals || now < control.next_signal) return 0;
        control.next_signal = now + kSignals;
        const nb::gil_scoped_acquire acquire;
        control.is_interrupted = PyErr_CheckSignals() != 0;
        return control.is_interrupted ? 1 : 0;
    }
};

class Handle {
   public:
    Handle(nb::bytes data, int threads, std::uint64_t max_memory, double max_work, const std::string& kernels) {
        dabnet_options options;
        dabnet_default_options(&options);
        options.threads = threads;
        options.max_memory = max_memory;
        options.max_work = max_work;
        if (!kernels.empty()) options.kernels = kernels.c_str();
        Sentence sentence;
        dabnet_status status;
        {
            const nb::gil_scoped_release release;
            status = dabnet_open(data.data(), data.size(), &options, &model_, sentence.text, Sentence::kSize);
        }
        if (status != DABNET_OK) raise(status, sentence.text);
    }
    ~Handle() { dabnet_close(model_); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    std::string about() const {
        char* json = nullptr;
        if (dabnet_about(model_, &json) != DABNET_OK) throw std::bad_alloc();
        return take_text(json);
    }

    void run(Images images, Matrix<float> logits, const Cancel* cancel, std::optional<double> seconds,
             bool hears_signals) const {
        Control control(cancel, seconds, hears_signals);
        Sentence sentence;
        dabnet_status status;
        {
            const nb::gil_scoped_release release;
            status = dabnet_run(model_, images.data(), images.shape(0), logits.data(), Control::should_stop, &control,
                                sentence.text, Sentence::kSize);
        }
        control.check(status, sentence.text);
    }

    // The likeliest labels' names and their probabilities of drawings [from, to), which were checked.
    nb::list recognize(const dabnet::Drawings& drawings, std::size_t from, std::size_t to, const nb::list& names,
                       std::size_t top, const Cancel* cancel, std::optional<double> seconds, bool hears_signals) const {
        to = std::min(to, drawings.size());
        from = std::min(from, to);
        top = std::min({top, dabnet_answer_count(model_), names.size()});
        const std::size_t count = to - from;
        std::vector<std::size_t> labels(count * top);
        std::vector<double> probabilities(count * top);
        std::vector<dabnet_status> statuses(count);
        // The strokes of the drawings before them are counted, and looked at no more than that.
        const std::size_t point = drawings.first_point(from), stroke = drawings.first_stroke(from);
        std::vector<std::int64_t> stroke_ends(
            drawings.stroke_ends.begin() + static_cast<std::ptrdiff_t>(stroke),
            drawings.stroke_ends.begin() + static_cast<std::ptrdiff_t>(drawings.first_stroke(to)));
        for (std::int64_t& end : stroke_ends) end -= static_cast<std::int64_t>(point);
        std::vector<std::int64_t> drawing_ends(drawings.drawing_ends.begin() + static_cast<std::ptrdiff_t>(from),
                                               drawings.drawing_ends.begin() + static_cast<std::ptrdiff_t>(to));
        for (std::int64_t& end : drawing_ends) end -= static_cast<std::int64_t>(stroke);
        const dabnet_strokes strokes{drawings.points.data() + 2 * point,
                                     drawings.first_point(to) - point,
                                     stroke_ends.data(),
                                     stroke_ends.size(),
                                     drawing_ends.data(),
                                     count};
        Control control(cancel, seconds, hears_signals);
        Sentence sentence;
        dabnet_status status;
        {
            const nb::gil_scoped_release release;
            status = dabnet_recognize_batch(model_, &strokes, top, labels.data(), probabilities.data(), statuses.data(),
                                            Control::should_stop, &control, sentence.text, Sentence::kSize);
        }
        control.check(status, sentence.text);
        nb::list answers;
        for (std::size_t i = 0; i < count; ++i) {
            if (statuses[i] != DABNET_OK) raise(statuses[i], "a drawing has no strokes that can be drawn.");
            nb::list answer;
            for (std::size_t j = i * top; j < (i + 1) * top; ++j) {
                answer.append(nb::make_tuple(names[labels[j]], probabilities[j]));
            }
            answers.append(answer);
        }
        return answers;
    }

    void time_steps(Images image, Vector<double> seconds) const {
        Sentence sentence;
        dabnet_status status;
        {
            const nb::gil_scoped_release release;
            status = dabnet_time_steps(model_, image.data(), seconds.data(), sentence.text, Sentence::kSize);
        }
        if (status != DABNET_OK) raise(status, sentence.text);
    }

    void draw_strokes(Array<const float, nb::shape<-1, 2>, nb::c_contig> points, Vector<const std::int64_t> ends,
                      Matrix<float> image) const {
        Sentence sentence;
        const dabnet_status status = dabnet_draw_strokes(model_, points.data(), ends.data(), ends.shape(0),
                                                         image.data(), sentence.text, Sentence::kSize);
        if (status != DABNET_OK) raise(status, sentence.text);
    }

    void draw_bitmap(Array<const std::uint8_t, nb::shape<256, 128>, nb::c_contig> bitmap, double line_width,
                     Matrix<float> image) const {
        Sentence sentence;
        const dabnet_status status =
            dabnet_draw_bitmap(model_, bitmap.data(), line_width, image.data(), sentence.text, Sentence::kSize);
        if (status != DABNET_OK) raise(status, sentence.text);
    }

    std::vector<std::pair<std::string, double>> rank(Vector<const float> logits, std::size_t top) const {
        top = std::min(top, dabnet_answer_count(model_));
        std::vector<std::size_t> labels(top);
        std::vector<double> probabilities(top);
        std::size_t found = 0;
        dabnet_rank(model_, logits.data(), top, labels.data(), probabilities.data(), &found);
        std::vector<std::pair<std::string, double>> ranked;
        for (std::size_t i = 0; i < found; ++i) {
            const char* label = dabnet_label(model_, labels[i]);
            ranked.emplace_back(label == nullptr ? "" : label, probabilities[i]);
        }
        return ranked;
    }

   private:
    dabnet_model* model_ = nullptr;
};

std::string inspect(nb::bytes data) {
    Sentence sentence;
    char* json = nullptr;
    dabnet_status status;
    {
        const nb::gil_scoped_release release;
        status = dabnet_inspect(data.data(), data.size(), &json, sentence.text, Sentence::kSize);
    }
    if (status != DABNET_OK) raise(status, sentence.text);
    return take_text(json);
}

void probabilities(Matrix<const float> logits, double temperature, Matrix<double> out) {
    const nb::gil_scoped_release release;
    const std::size_t classes = logits.shape(1);
    for (std::size_t row = 0; row < logits.shape(0); ++row) {
        const auto chances = dabnet::probabilities(logits.data() + row * classes, classes, temperature);
        std::copy(chances.begin(), chances.end(), out.data() + row * classes);
    }
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    while (const char* name = dabnet_kernels(names.size())) names.emplace_back(name);
    return names;
}

}  // namespace

void bind_model(nb::module_& module) {
    core_error = PyErr_NewException("dabnet._native.CoreError", nullptr, nullptr);
    module.attr("CoreError") = nb::borrow(core_error);
    for (const auto& [name, status] : {std::pair{"BAD_ARGUMENT", int{DABNET_BAD_ARGUMENT}},
                                       {"BAD_MODEL", int{DABNET_BAD_MODEL}},
                                       {"TOO_LARGE", int{DABNET_TOO_LARGE}},
                                       {"TOO_MUCH_WORK", int{DABNET_TOO_MUCH_WORK}},
                                       {"BAD_INPUT", int{DABNET_BAD_INPUT}},
                                       {"NOT_FINITE", int{DABNET_NOT_FINITE}},
                                       {"CANCELLED", int{DABNET_CANCELLED}},
                                       {"NO_MEMORY", int{DABNET_NO_MEMORY}},
                                       {"TIME_LIMIT", kTimeLimit}}) {
        module.attr(name) = status;
    }
    dabnet_options defaults;
    dabnet_default_options(&defaults);
    module.attr("MAX_MEMORY") = defaults.max_memory;
    module.attr("MAX_WORK") = defaults.max_work;
    module.def("kernel_names", kernel_names, "Return the names of the kernels that run here, the fastest first.");
    module.def("probabilities", probabilities, "logits"_a.noconvert(), "temperature"_a, "out"_a.noconvert(),
               "Write softmax(logits / temperature) into `out`.");
    module.def("inspect", inspect, "data"_a, "Check a file; return what it holds as JSON.");
    nb::class_<Cancel>(module, "Cancel", "Lets one thread stop the runs of others.")
        .def(nb::init<>())
        .def("cancel", &Cancel::cancel)
        .def_prop_ro("is_cancelled", &Cancel::is_cancelled);
    nb::class_<Handle>(module, "Model", "An open packed model.")
        .def(nb::init<nb::bytes, int, std::uint64_t, double, const std::string&>(), "data"_a, "threads"_a,
             "max_memory"_a, "max_work"_a, "kernels"_a)
        .def("about", &Handle::about, "Return what it is as JSON.")
        .def("run", &Handle::run, "images"_a.noconvert(), "logits"_a.noconvert(), "cancel"_a.none(), "seconds"_a.none(),
             "hears_signals"_a)
        .def("time_steps", &Handle::time_steps, "image"_a.noconvert(), "seconds"_a.noconvert())
        .def("draw_strokes", &Handle::draw_strokes, "points"_a.noconvert(), "ends"_a.noconvert(), "image"_a.noconvert())
        .def("draw_bitmap", &Handle::draw_bitmap, "bitmap"_a.noconvert(), "line_width"_a, "image"_a.noconvert())
        .def("recognize", &Handle::recognize, "drawings"_a, "first"_a, "end"_a, "names"_a, "top"_a, "cancel"_a.none(),
             "seconds"_a.none(), "hears_signals"_a)
        .def("rank", &Handle::rank, "logits"_a.noconvert(), "top"_a);
}
