/* dabnet: recognizes free-hand sketches with packed networks.
 *
 * This is the only public interface of libdabnet, for C, C++ and whatever can call C. Bytes of a packed model go in,
 * logits and labels come out; nothing is read from the file system, and nothing is kept between calls but the model.
 *
 * Every call that can fail returns a dabnet_status. Where it takes `error`, a buffer of the caller's, one sentence in
 * UTF-8 says what was wrong and what to do; it is cut to `error_size` bytes, its ending 0 included, and may be NULL.
 *
 * Threads may share a model: all calls but dabnet_close may be made at the same time.
 */
#ifndef DABNET_H
#define DABNET_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(DABNET_SHARED)
#define DABNET_API __declspec(dllimport)
#elif defined(__GNUC__)
#define DABNET_API __attribute__((visibility("default")))
#else
#define DABNET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when a program that was compiled with an older header would no longer work. */
#define DABNET_ABI_VERSION 1

typedef enum dabnet_status {
    DABNET_OK = 0,
    DABNET_BAD_ARGUMENT = 1,  /* an argument that makes no sense */
    DABNET_BAD_MODEL = 2,     /* the bytes are no packed model that can be used */
    DABNET_TOO_LARGE = 3,     /* the model takes more memory than max_memory */
    DABNET_TOO_MUCH_WORK = 4, /* the model takes more work than max_work */
    DABNET_BAD_INPUT = 5,     /* a drawing or an image that cannot be recognized */
    DABNET_NOT_FINITE = 6,    /* the model answered with a number that is not finite */
    DABNET_CANCELLED = 7,     /* the host stopped the run */
    DABNET_NO_MEMORY = 8      /* the system has no more memory */
} dabnet_status;

typedef struct dabnet_model dabnet_model;

/* Fill it with dabnet_default_options, then change what should differ. */
typedef struct dabnet_options {
    uint32_t struct_size; /* of this struct, so that it can grow */
    int32_t threads;      /* that may be at work in one call; an answer does not depend on them */
    uint64_t max_memory;  /* bytes that the model, an image and its answer may take: 256 MiB by default */
    double max_work;      /* multiply-adds, or what takes as long, of one image: 20 billion by default */
    const char* kernels;  /* the name of the kernels to use; NULL for the fastest that run here */
} dabnet_options;

/* Called now and then by the thread that called dabnet_run, at most every few milliseconds; not 0 stops the run. */
typedef int (*dabnet_should_stop)(void* context);

DABNET_API uint32_t dabnet_abi_version(void);
DABNET_API void dabnet_default_options(dabnet_options* options);

/* The name of the i-th set of kernels that runs here, the fastest first; NULL beyond the last. */
DABNET_API const char* dabnet_kernels(size_t i);

/* Opens a packed model from the bytes of its file, which are not needed afterwards. `options` may be NULL. */
DABNET_API dabnet_status dabnet_open(const void* bytes, size_t size, const dabnet_options* options,
                                     dabnet_model** model, char* error, size_t error_size);
DABNET_API void dabnet_close(dabnet_model* model);

/* Checks a file as dabnet_open does, but for its memory and its work, and describes it as JSON: "shapes", a list of
 * [channels, height, width, element type] of the input and of what each node makes. Free the text with dabnet_free. */
DABNET_API dabnet_status dabnet_inspect(const void* bytes, size_t size, char** json, char* error, size_t error_size);

/* Describes an open model as JSON: "input", "answers", "labels", "raster" (or null), "temperature",
 * "views_temperature", "steps", "kernels", "threads", "memory", "work" and "batch", how many images fit into max_memory
 * beside the model. Free the text with dabnet_free. */
DABNET_API dabnet_status dabnet_about(const dabnet_model* model, char** json);
DABNET_API void dabnet_free(char* text);

/* How many numbers an image has (channels * height * width) and how many come out for it. */
DABNET_API size_t dabnet_input_count(const dabnet_model* model);
DABNET_API size_t dabnet_answer_count(const dabnet_model* model);

/* The i-th label in UTF-8, owned by the model; NULL if there is none. */
DABNET_API const char* dabnet_label(const dabnet_model* model, size_t i);

/* Runs `batch` images (channels, height, width), ink 1.0 on 0.0, and writes dabnet_answer_count logits for each.
 * `should_stop` may be NULL. After anything but DABNET_OK the logits mean nothing. */
DABNET_API dabnet_status dabnet_run(const dabnet_model* model, const float* images, size_t batch, float* logits,
                                    dabnet_should_stop should_stop, void* context, char* error, size_t error_size);

/* The seconds that each of the "steps" of dabnet_about takes for one image, on one thread. */
DABNET_API dabnet_status dabnet_time_steps(const dabnet_model* model, const float* image, double* seconds, char* error,
                                           size_t error_size);

/* Draws strokes as the model wants them, into dabnet_input_count numbers. `points` are x, y of all strokes in turn, y
 * downwards, at any scale; stroke i ends before point ends[i]. */
DABNET_API dabnet_status dabnet_draw_strokes(const dabnet_model* model, const float* points, const int64_t* ends,
                                             size_t strokes, float* image, char* error, size_t error_size);

/* Draws a bitmap of 256x256 pixels, 4 bits each, the left one of a byte in its high bits; 15 is full ink. `line_width`
 * is how wide its lines are, in pixels; 0 has it measured. */
DABNET_API dabnet_status dabnet_draw_bitmap(const dabnet_model* model, const uint8_t* bitmap, double line_width,
                                            float* image, char* error, size_t error_size);

/* Finds the ink in a picture of a drawing, clean or photographed, and draws it. `pixels` are rows from the top, with 1
 * (grey), 3 (red, green, blue) or 4 channels (with an alpha that is not premultiplied), 0 to 255. */
DABNET_API dabnet_status dabnet_draw_picture(const dabnet_model* model, const uint8_t* pixels, size_t width,
                                             size_t height, size_t channels, float* image, char* error,
                                             size_t error_size);

/* Ranks an image's logits: the likeliest `top` labels' numbers and their calibrated probabilities, the likeliest first.
 * Writes how many there are to `found`, at most `top`. */
DABNET_API dabnet_status dabnet_rank(const dabnet_model* model, const float* logits, size_t top, size_t* labels,
                                     double* probabilities, size_t* found);

/* Draws strokes, runs them and ranks the answer. */
DABNET_API dabnet_status dabnet_recognize_strokes(const dabnet_model* model, const float* points, const int64_t* ends,
                                                  size_t strokes, size_t top, size_t* labels, double* probabilities,
                                                  size_t* found, char* error, size_t error_size);

/* Many drawings, as Arrow keeps lists of lists: x, y of all points in turn, the number of points up to the end of each
 * stroke, and the number of strokes up to the end of each drawing. */
typedef struct dabnet_strokes {
    const float* points;
    size_t point_count;
    const int64_t* stroke_ends;
    size_t stroke_count;
    const int64_t* drawing_ends;
    size_t drawing_count;
} dabnet_strokes;

/* Draws many drawings, runs them and ranks the answers, each drawing on a thread of the model's. `labels` and
 * `probabilities` have `top` entries for each drawing, of which dabnet_answer_count are written at most. A drawing's
 * status is DABNET_OK, or DABNET_BAD_INPUT (dabnet_draw_strokes says why), and then its entries mean nothing; the
 * others are recognized all the same. `should_stop` may be NULL. */
DABNET_API dabnet_status dabnet_recognize_batch(const dabnet_model* model, const dabnet_strokes* strokes, size_t top,
                                                size_t* labels, double* probabilities, dabnet_status* statuses,
                                                dabnet_should_stop should_stop, void* context, char* error,
                                                size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
