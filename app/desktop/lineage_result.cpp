// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/lineage_result.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <limits>

namespace ponderscope {

namespace {

double number(const QJsonValue& value) {
    return value.isDouble() ? value.toDouble() : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

std::optional<LineageResult> LineageResult::parse(const QByteArray& json) {
    const QJsonObject object = QJsonDocument::fromJson(json).object();
    const QJsonObject awm = object.value(QLatin1String("awm")).toObject();
    if (!object.value(QLatin1String("verdict")).isString() || !awm.value(QLatin1String("z")).isDouble() ||
        !awm.value(QLatin1String("similarity")).isDouble()) {
        return std::nullopt;
    }
    LineageResult result;
    result.verdict = object.value(QLatin1String("verdict")).toString();
    result.sentence = object.value(QLatin1String("sentence")).toString();
    result.basis = object.value(QLatin1String("basis")).toString();
    const QJsonArray notices = object.value(QLatin1String("notices")).toArray();
    for (const QJsonValue notice : notices) {
        result.notices << notice.toString();
    }
    result.similarity = awm.value(QLatin1String("similarity")).toDouble();
    result.z = awm.value(QLatin1String("z")).toDouble();
    result.zPublished = number(awm.value(QLatin1String("z_published")));
    result.relatedFrom = number(awm.value(QLatin1String("common_origin_from")));
    result.sharedTokens = awm.value(QLatin1String("shared_tokens")).toInteger();
    const QJsonObject query = awm.value(QLatin1String("Wq")).toObject();
    const QJsonObject key = awm.value(QLatin1String("Wk")).toObject();
    const QJsonArray pairs = awm.value(QLatin1String("layer_pairs")).toArray();
    for (const QJsonValue pair : pairs) {
        const int a = pair.toArray().at(0).toInt();
        result.layers.push_back({a, pair.toArray().at(1).toInt(), number(query.value(QString::number(a))),
                                 number(key.value(QString::number(a)))});
    }
    const QJsonObject huref = object.value(QLatin1String("huref")).toObject();
    result.huref = !huref.isEmpty();
    result.whyNoHuref = object.value(QLatin1String("why_no_huref")).toString();
    result.ics = number(huref.value(QLatin1String("ics")));
    const QJsonArray terms = huref.value(QLatin1String("layer_pairs")).toArray();
    for (qsizetype i = 0; i < terms.size(); ++i) {
        const auto term = [&](const char* name) {
            return number(huref.value(QLatin1String(name)).toArray().at(i));
        };
        result.hurefLayers.push_back({terms.at(i).toArray().at(0).toInt(),
                                      terms.at(i).toArray().at(1).toInt(), term("WqWk"), term("WvWo"),
                                      term("WuWd")});
    }
    return result;
}

} // namespace ponderscope
