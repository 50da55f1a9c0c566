// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/run_choice.h"

#include "app/desktop/open_traces.h"
#include "app/desktop/settings.h"

#include <algorithm>

namespace ponderscope {

RunChoice::RunChoice(const Shell& shell, OpenTraces& traces)
    : ShellPart(shell), follower_(traces.follower()) {
    connect(&traces.opener(), &Opener::opened, this, [this](const QString& path) {
        if (!data_.isLive(path) && !data_.isScratch(path)) {
            settings_.addRecent(path);
        }
        chooseRuns();
        if (!selection_.runB().isValid() && !withoutB_) {
            compareOverTheSameText();
        }
    });
    connect(&data_, &TraceData::traceChanged, this, &RunChoice::chooseRuns);
    connect(&data_, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run == selection_.runA()) {
            fitSequence();
        }
    });
    connect(&data_, &TraceData::traceClosed, this, [this](const QString& path) {
        if (selection_.runB().trace == path) {
            selection_.setRunB({});
        }
        if (selection_.runA().trace == path) {
            selection_.setRunA({});
            chooseRuns();
        }
    });
    connect(&selection_, &Selection::runsChanged, this, [this] {
        fitSequence();
        // A B that is there and was left is not wanted; one that vanished may have a successor.
        const RunKey b = selection_.runB();
        withoutB_ = !b.isValid() && (withoutB_ || isListed(lastB_));
        lastB_ = b;
    });
}

void RunChoice::fitSequence() {
    const auto sequences = data_.sequences(selection_.runA());
    if (data_.run(selection_.runA()) != nullptr &&
        data_.sequenceInfo(selection_.runA(), selection_.sequence()) == nullptr) {
        selection_.setSequence(sequences.empty() ? 0 : sequences.front().number);
    }
}

bool RunChoice::isListed(const RunKey& key) const {
    const std::vector<RunInfo> runs = data_.runs(key.trace);
    return std::any_of(runs.begin(), runs.end(), [&key](const RunInfo& run) { return run.id == key.run; });
}

void RunChoice::chooseRuns() {
    const RunKey a = selection_.runA();
    const RunKey b = selection_.runB();
    if (b.isValid() && !isListed(b)) {
        selection_.setRunB({});
    }
    if (!isListed(a)) {
        // A run that ponders is what the program is for; else the first.
        RunKey first;
        RunKey pondering;
        const QStringList traces = data_.traces();
        for (const QString& trace : traces) {
            for (const RunInfo& run : data_.runs(trace)) {
                const RunKey key{trace, run.id};
                first = first.isValid() ? first : key;
                pondering = pondering.isValid() || run.max_steps == 0 ? pondering : key;
            }
        }
        selection_.setRunA(pondering.isValid() ? pondering : first);
        if (!selection_.runB().isValid() && !withoutB_) {
            compareOverTheSameText();
        }
    }
    follower_.rebase(a, b);
}

void RunChoice::compareOverTheSameText() {
    const RunInfo* a = data_.run(selection_.runA());
    const QStringList traces = data_.traces();
    for (const QString& trace : traces) {
        for (const RunInfo& run : data_.runs(trace)) {
            const RunKey key{trace, run.id};
            if (a != nullptr && key != selection_.runA() && run.text_digest == a->text_digest) {
                selection_.setRunB(key);
                return;
            }
        }
    }
}

} // namespace ponderscope
