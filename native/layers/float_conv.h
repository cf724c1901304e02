// A convolution of real numbers, which skips blank paper. It is no layer yet: what follows it makes it one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../scratch.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {

// A filter's i-th weight, also of 8 bits or of one, as the real number that it stands for.
float real_weight(const Convolution& convolution, std::size_t filter, std::size_t i);

class FloatConv {
   public:
    static constexpr std::size_t kPart = 64;  // weights whose products are one part of a sum; the bits of a word

    static std::uint64_t bytes(const Convolution& convolution);

    // The arrays are copied. One-bit weights are taken as the real numbers that they stand for.
    FloatConv(const Kernels& kernels, const Convolution& convolution);

    const Kernels& kernels() const { return kernels_; }
    std::size_t filters() const { return convolution_.filters; }
    std::size_t rows() const { return convolution_.window.height.positions; }
    std::size_t columns() const { return convolution_.window.width.positions; }
    double work() const;

    // A number that is not 0, and where it stands in its row, among its group's channels.
    struct Ink {
        float x;
        std::uint32_t at;
    };
    // The terms of a position, where their parts end, and the sums of all filters. With short rows, a bit for each
    // number of the padded rows, whether it is ink, for all rows that a position sees, and for each tap of it. Else the
    // ink, where the ink of each position's groups starts, and how many columns before each have ink.
    struct Scratch {
        Term* terms;
        std::size_t* ends;
        float* sums;
        std::uint64_t *bits, *seen, *under;
        Ink* ink;
        std::uint32_t *starts, *inked;
    };
    Scratch carve(Carver& carver) const;

    // Finds the ink on the rows that rows [from, to) of positions see; false if the run has to end.
    bool start(const Job& job, std::size_t from, std::size_t to, const Scratch& scratch) const;

    // Makes a row after `start`; its first position is number `position` of the epilogue's. What of it sees only blank
    // paper is left out, if asked, and noted. False if the run has to end.
    bool make_row(const Job& job, std::size_t row, const Epilogue& epilogue, std::size_t position,
                  const Scratch& scratch, bool* left_out = nullptr) const;

    // Makes a position that sees only blank paper.
    void make_blank(const Epilogue& epilogue, std::size_t position) const {
        run_epilogue(kernels_, epilogue, position, bias_.data());
    }

   private:
    struct alignas(64) Line {
        float numbers[16];
    };

    std::size_t most_terms() const { return static_cast<std::size_t>(convolution_.taps()); }
    std::size_t group_filters() const { return convolution_.filters / convolution_.groups; }
    // Whether a row of the window has no more numbers than a word has bits.
    bool has_short_rows() const;
    std::size_t row_taps() const { return convolution_.window.width.kernel * convolution_.input.channels; }
    std::size_t row_bits() const { return convolution_.window.width.extent() * convolution_.input.channels; }
    std::size_t row_words() const { return row_bits() / 64 + 2; }  // one more, so that any bit has a word after its own
    void find_bits(const float* x, std::uint64_t* bits) const;
    void find_seen(std::size_t row, const Scratch& scratch) const;
    std::uint64_t row_ink(const std::uint64_t* bits, std::size_t column) const;
    void find_ink(std::size_t row, std::size_t column, const Scratch& scratch) const;
    void sum_ink(const float* x, std::size_t row, std::size_t column, const Scratch& scratch) const;

    bool list_ink(const Job& job, std::size_t top, std::size_t bottom, const Scratch& scratch) const;
    void find_inked_columns(const std::uint32_t* starts, std::size_t row, std::uint32_t* inked) const;
    bool is_blank(const std::uint32_t* inked, std::size_t column) const;
    std::size_t gather(std::size_t row, std::size_t column, std::size_t group, const Scratch& scratch) const;

    const Kernels& kernels_;
    Convolution convolution_;    // but for its arrays, which are not kept
    std::vector<Line> weights_;  // (groups, taps, channels of a group, filters of a group)
    std::vector<float> bias_;
    std::vector<std::size_t> offsets_;  // with short rows: where each tap stands, from the top left one
};

std::unique_ptr<Layer> make_pooled_conv(const Kernels& kernels, const Convolution& convolution,
                                        const Epilogue& epilogue, const Window& pool);

}  // namespace dabnet
