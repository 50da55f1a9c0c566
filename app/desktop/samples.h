// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// A checkpoint that comes with the program.
struct SampleModel {
    QString name;         ///< "ponderlm-neox-1m"
    QString checkpoint;   ///< folder
    QString summary;      ///< "ponderlm · 3 pondering steps · 4 layers"; what its config.json says
    bool cabinet;         ///< one of many that are alike but for their method
    bool stories = false; ///< of those that read the stories, whose answers need a known number of steps
};

/// The sample models: in the source tree, or below share/ponderscope.
struct Samples {
    QString folder;                  ///< empty: nothing was found
    std::vector<SampleModel> models; ///< models of the cabinet come last
    QString text;                    ///< passage that they are recorded over; empty: none
    QString recorded;                ///< a trace of them that exists already; empty: none
    QString stories = {};            ///< text for the models of the stories; empty: none
};

/// Looks from \p start (the program's folder) upwards; reads the config files and nothing else.
Samples find_samples(const QString& start);

/// The samples of this installation, searched at the first call.
class SampleShelf {
public:
    const Samples& get() { return samples_.folder.isEmpty() ? refresh() : samples_; }
    const Samples& refresh();

private:
    Samples samples_;
};

/// The recorded sample as a copy in \p folder, which is the user's: annotations and new names go there
/// and not among the files of the program. Made anew when the sample is newer. Empty: \p problem says why.
QString copy_of_recorded(const Samples& samples, const QString& folder, QString& problem);

/// Records a sample over the passage, or a story a window. Into a folder of the user's: the samples' may be
/// read-only.
RecordRequest sample_request(const Samples& samples, const SampleModel& model, const QString& folder);

} // namespace ponderscope
