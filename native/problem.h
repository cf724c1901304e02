// What was wrong, without exceptions: functions that can fail return false or null, and leave one sentence here.
#pragma once

#include <string>
#include <utility>

#include "dabnet.h"

namespace dabnet {

struct Problem {
    dabnet_status status = DABNET_OK;
    std::string sentence;

    // Returns false, so that a failure can be noted and returned at once.
    bool fail(dabnet_status why, std::string what) {
        status = why;
        sentence = std::move(what);
        return false;
    }
    bool bad_model(std::string what) { return fail(DABNET_BAD_MODEL, std::move(what)); }
};

}  // namespace dabnet
