// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// A checkpoint that is installed with the program.
struct SampleModel {
    QString name;         ///< below the samples: "ponderlm-neox-1m", "cabinet/mhc-llama"
    QString checkpoint;   ///< folder
    bool stories = false; ///< reads the stories, whose answers need a known number of steps
};

/// The sample models, in the source tree or below share/ponderscope.
struct Samples {
    QString folder;                  ///< empty: not found
    std::vector<SampleModel> models;
    QString text;                    ///< sample text for the recordings; empty: none
    QString recorded;                ///< an existing trace of the samples; empty: none
    QString stories = {};            ///< text for models that read the stories; empty: none
};

/// Searches from \p start (the program's folder) upwards. Reads only the config files.
Samples find_samples(const QString& start);

/// The samples of this installation, searched at the first call.
class SampleShelf {
public:
    const Samples& get() { return samples_.folder.isEmpty() ? refresh() : samples_; }
    const Samples& refresh();

private:
    Samples samples_;
};

/// A copy of the recorded sample in the user's \p folder, so that annotations and new names do not change the
/// program's files. Copies again if the sample is newer. Empty: \p problem says why.
QString copy_of_recorded(const Samples& samples, const QString& folder, QString& problem);

/// A request to record a sample model over the sample text, or the stories with one story in each window.
/// Writes to the user's folder, because the samples' folder may be read-only.
RecordRequest sample_request(const Samples& samples, const SampleModel& model, const QString& folder);

} // namespace ponderscope
