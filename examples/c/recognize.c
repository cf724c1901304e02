/* Tells what drawings show, as `dabnet recognize` does: recognize MODEL FILE...
 *
 * Files hold strokes as JSON, [[[x, y], [x, y], ...], ...]. Build it against libdabnet:
 *
 *     cc -std=c11 recognize.c $(pkg-config --cflags --libs dabnet) -o recognize
 */
#include <dabnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 3, MOST_POINTS = 32768, WIDEST_NAME = 48 };

static char* read_file(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    if (file == NULL) return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char* bytes = calloc(*size + 1, 1);
    if (bytes != NULL) *size = fread(bytes, 1, *size, file);
    fclose(file);
    return bytes;
}

/* Takes the numbers of nested lists: two make a point, and a closed list of points is a stroke. */
static size_t read_strokes(const char* at, float* points, int64_t* ends) {
    size_t numbers = 0, strokes = 0;
    for (int depth = 0; *at != 0;) {
        if (strchr("-0123456789", *at) != NULL && numbers < 2 * MOST_POINTS) {
            char* end;
            points[numbers++] = strtof(at, &end);
            at = end;
            continue;
        }
        depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
        const int64_t done = strokes == 0 ? 0 : ends[strokes - 1];
        if (*at++ == ']' && depth == 1 && (int64_t)(numbers / 2) > done) ends[strokes++] = (int64_t)(numbers / 2);
    }
    return strokes;
}

static const char* percent(double share, char text[16]) {
    snprintf(text, 16, share < 0.01 ? "<1 %%" : "%.0f %%", 100 * share);
    return text;
}

static void print_line(const dabnet_model* model, const char* name, int name_width, int label_width,
                       const size_t* labels, const double* shares, size_t found) {
    char text[16];
    const int is_sure = found > 0 && shares[0] >= 0.5;
    printf("%-*s  %-*s  %5s  ", name_width, name, label_width, is_sure ? dabnet_label(model, labels[0]) : "not sure",
           is_sure ? percent(shares[0], text) : "");
    for (size_t i = is_sure ? 1 : 0; i < found; ++i) {
        printf("%s %s%s", dabnet_label(model, labels[i]), percent(shares[i], text), i + 1 < found ? ", " : "");
    }
    puts("");
}

int main(int count, char** arguments) {
    static float points[2 * MOST_POINTS];
    static int64_t ends[MOST_POINTS];
    char error[512] = "";
    size_t size = 0;
    if (count < 3) return fprintf(stderr, "usage: recognize MODEL FILE...\n"), 2;
    char* bytes = read_file(arguments[1], &size);
    dabnet_model* model = NULL;
    if (bytes == NULL || dabnet_open(bytes, size, NULL, &model, error, sizeof error) != DABNET_OK) {
        return fprintf(stderr, "%s: %s\n", arguments[1], bytes == NULL ? "it cannot be read." : error), 2;
    }
    free(bytes); /* the model does not need them any more */

    int name_width = (int)strlen("drawing"), label_width = (int)strlen("not sure"), failed = 0;
    for (int i = 2; i < count; ++i) {
        const int width = (int)strlen(arguments[i]);
        if (width > name_width) name_width = width < WIDEST_NAME ? width : WIDEST_NAME;
    }
    for (size_t i = 0; dabnet_label(model, i) != NULL; ++i) {
        const int width = (int)strlen(dabnet_label(model, i));
        if (width > label_width) label_width = width;
    }
    printf("%-*s  %-*s         also likely\n", name_width, "drawing", label_width, "guess");
    for (int i = 2; i < count; ++i) {
        size_t labels[TOP], found = 0;
        double shares[TOP];
        char* drawing = read_file(arguments[i], &size);
        const size_t strokes = drawing == NULL ? 0 : read_strokes(drawing, points, ends);
        free(drawing);
        if (dabnet_recognize_strokes(model, points, ends, strokes, TOP, labels, shares, &found, error, sizeof error) !=
            DABNET_OK) {
            failed = fprintf(stderr, "%s: %s\n", arguments[i], error);
            continue;
        }
        print_line(model, arguments[i], name_width, label_width, labels, shares, found);
    }
    dabnet_close(model);
    return failed ? 1 : 0;
}
