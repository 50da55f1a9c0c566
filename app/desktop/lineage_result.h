// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QString>
#include <QStringList>

#include <optional>
#include <vector>

namespace ponderscope {

/// What `ponderscope lineage --json` says, as far as the window shows it.
struct LineageResult {
    struct Layer {
        int a = 0;
        int b = 0;
        double query = 0;
        double key = 0;
    };
    struct HurefLayer {
        int a = 0;
        int b = 0;
        double queryKey = 0;
        double valueOutput = 0;
        double upDown = 0;
    };
    QString verdict; ///< "common origin", "undecided", "no common origin found"
    QString sentence;
    QString basis;
    QStringList notices;
    double similarity = 0;
    double z = 0;
    double zPublished = 0;
    double relatedFrom =
        0; ///< the mean similarity at which the verdict becomes "common origin"; NaN: not said
    qint64 sharedTokens = 0;
    std::vector<Layer> layers;
    bool huref = false;
    QString whyNoHuref;
    double ics = 0; ///< NaN: not known
    std::vector<HurefLayer> hurefLayers;

    /// Absent when the text is not such a result.
    static std::optional<LineageResult> parse(const QByteArray& json);
};

} // namespace ponderscope
