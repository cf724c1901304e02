// Feeds changed headers to the parser alone, for so many seconds.
//
//     fuzz_parser SECONDS SEED FILE...
//
// Each try takes a file, changes its header and asks dabnet_inspect what it holds. With sanitizers, what touches memory
// that is not its own ends the program; without, so does what takes longer than a second, or says something odd.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../dabnet.h"

namespace {

using Clock = std::chrono::steady_clock;

// Numbers that depend on the seed alone, by Steele, Lea and Flood's SplitMix.
class Random {
   public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) { return count == 0 ? 0 : bits() % count; }
    bool one_in(std::size_t count) { return below(count) == 0; }

   private:
    std::uint64_t state_;
};

struct File {
    std::string header, data;
};

// What a change may put in: parts of JSON, of a description, and numbers where arithmetic could break.
const char* const kWords[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\\"",
    "\\\\\"",
    "null",
    "true",
    "NaN",
    "-Infinity",
    "0",
    "-1",
    "1",
    "65535",
    "65536",
    "16777217",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "-0",
    "0.5",
    "1e",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\\\ud83c",
    "\xc3",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "F32",
    "U8",
    "BF16",
    "I8",
    "F4",
    "shape",
    "data_offsets",
    "dtype",
    "__metadata__",
    "dabnet",
    "version",
    "inputs",
    "kernel",
    "stride",
    "padding",
    "dilation",
    "filters",
    "groups",
    "pad_value",
    "count_padding",
    "size",
    "low",
    "high",
    "name",
    "labels",
    "raster",
    "temperature",
    "conv",
    "sign",
    "quantize",
    "scale",
    "affine",
    "relu",
    "clamp",
    "prelu",
    "max_pool",
    "avg_pool",
    "adaptive_max_pool",
    "add",
    "concat",
    "flatten",
    ".weight",
    ".int8",
    ".bits",
    ".scale",
    ".middle",
    ".bias",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":{\"a\":",
    "               ",
};

void change(Random& random, const std::vector<File>& files, File& file) {
    std::string& text = file.header;
    const std::size_t at = random.below(text.size() + 1);
    const std::size_t length = random.below(std::min<std::size_t>(text.size() - at, 40) + 1);
    switch (random.below(10)) {
        case 0:
            if (at < text.size()) text[at] = static_cast<char>(random.bits());
            break;
        case 1:
            if (at < text.size()) text[at] ^= static_cast<char>(1 << random.below(8));
            break;
        case 2:
        case 3:
            text.replace(at, length * random.below(2), kWords[random.below(sizeof kWords / sizeof *kWords)]);
            break;
        case 4:
            text.erase(at, length);
            break;
        case 5:
            text.insert(random.below(text.size() + 1), text.substr(at, length));
            break;
        case 6: {  // a run of another file
            const std::string& other = files[random.below(files.size())].header;
            text.insert(at, other.substr(random.below(other.size() + 1), random.below(200)));
            break;
        }
        case 7: {  // a digit
            const std::size_t digit = text.find_first_of("0123456789", at);
            if (digit != text.npos) text[digit] = static_cast<char>('0' + random.below(10));
            break;
        }
        case 8: {  // a number
            const std::size_t digit = text.find_first_of("0123456789", at);
            if (digit == text.npos) break;
            const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
            text.replace(digit, end - digit, std::to_string(random.bits() >> random.below(64)));
            break;
        }
        default:  // many of the same
            for (std::size_t i = random.below(50); i != 0 && text.size() < 1 << 16; --i) {
                text.insert(at, kWords[random.below(6)]);
            }
    }
}

std::string bytes_of(Random& random, const File& file) {
    std::uint64_t length = file.header.size();
    if (random.one_in(50)) length = random.one_in(2) ? random.bits() : length + random.below(16) - 8;
    std::string bytes(8, 0);
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + file.header +
           (random.one_in(50) ? file.data.substr(0, random.below(file.data.size() + 1)) : file.data);
}

bool read_file(const char* path, File& file) {
    std::FILE* opened = std::fopen(path, "rb");
    if (opened == nullptr) return false;
    std::string bytes;
    char block[4096];
    for (std::size_t count; (count = std::fread(block, 1, sizeof block, opened)) != 0;) bytes.append(block, count);
    std::fclose(opened);
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) return false;
    std::memcpy(&length, bytes.data(), sizeof length);
    file = {bytes.substr(8, length), bytes.substr(8 + length)};
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<File> files;
    for (int i = 3; i < count; ++i) {
        files.emplace_back();
        if (!read_file(arguments[i], files.back())) return std::fprintf(stderr, "cannot read %s\n", arguments[i]), 2;
    }
    if (files.empty()) return std::fputs("usage: fuzz_parser SECONDS SEED FILE...\n", stderr), 2;
    const double seconds = std::strtod(arguments[1], nullptr);
    Random random(std::strtoull(arguments[2], nullptr, 10));
    const auto begun = Clock::now();
    std::uint64_t tries = 0, read = 0;
    double slowest = 0;
    const auto passed = [](Clock::time_point since) {
        return std::chrono::duration<double>(Clock::now() - since).count();
    };
    for (; passed(begun) < seconds; ++tries) {
        File file = files[random.below(files.size())];
        for (std::size_t changes = 1 + random.below(random.one_in(4) ? 12 : 3); changes != 0; --changes) {
            change(random, files, file);
        }
        const std::string bytes = bytes_of(random, file);
        std::vector<char> exact(bytes.begin(), bytes.end());  // so that a sanitizer sees where it ends
        char error[16384] = "";
        char* json = nullptr;
        const auto start = Clock::now();
        const dabnet_status status = dabnet_inspect(exact.data(), exact.size(), &json, error, sizeof error);
        slowest = std::max(slowest, passed(start));
        const std::size_t said = std::strlen(error);
        if ((status == DABNET_OK) != (json != nullptr) || (status == DABNET_OK) != (said == 0) || slowest > 1 ||
            (said != 0 && error[said - 1] != '.')) {
            std::printf("try %llu: status %d, %.2f s, '%s'\n", static_cast<unsigned long long>(tries), status, slowest,
                        error);
            return 1;
        }
        read += status == DABNET_OK;
        dabnet_free(json);
    }
    std::printf("%llu headers in %.0f s: %llu made sense, the others were refused; slowest %.3f s\n",
                static_cast<unsigned long long>(tries), passed(begun), static_cast<unsigned long long>(read), slowest);
    return 0;
}
