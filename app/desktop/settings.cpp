// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/settings.h"

#include "views/common/paths.h"

#include <QFileInfo>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace ponderscope {

namespace {

constexpr qsizetype most_kept = 12;

constexpr std::array<std::pair<Appearance, std::string_view>, 4> appearance_names{
    {{Appearance::system, "system"},
     {Appearance::light, "light"},
     {Appearance::dark, "dark"},
     {Appearance::contrast, "contrast"}}};

template <class Names>
auto value_called(const Names& names, const QString& name) {
    const auto found =
        std::ranges::find_if(names, [&](const auto& one) { return name.toStdString() == one.second; });
    return found == names.end() ? std::nullopt : std::optional(found->first);
}

/// \p names are in the order of the enumeration.
QString name_of(const auto& names, auto value) {
    const std::string_view name = names[static_cast<std::size_t>(value)].second;
    return QString::fromLatin1(name.data(), static_cast<qsizetype>(name.size()));
}

} // namespace

std::optional<Appearance> appearance_called(const QString& name) {
    return value_called(appearance_names, name);
}

QStringList Settings::recent() const {
    QStringList existing;
    const QStringList all = file_.value(u"recent"_s).toStringList();
    std::ranges::copy_if(all, std::back_inserter(existing),
                         [](const QString& path) { return is_elsewhere(path) || QFileInfo::exists(path); });
    return existing;
}

void Settings::addRecent(const QString& path) {
    QStringList all = file_.value(u"recent"_s).toStringList();
    all.removeAll(path);
    all.prepend(path);
    file_.setValue(u"recent"_s, QStringList(all.mid(0, most_kept)));
}

Appearance Settings::appearance() const {
    return appearance_called(file_.value(u"appearance"_s).toString()).value_or(Appearance::system);
}

void Settings::setAppearance(Appearance appearance) {
    file_.setValue(u"appearance"_s, name_of(appearance_names, appearance));
}

MagnitudeMap Settings::magnitude() const {
    return value_called(magnitude_names, file_.value(u"colour_map"_s).toString())
        .value_or(MagnitudeMap::viridis);
}

void Settings::setMagnitude(MagnitudeMap map) {
    file_.setValue(u"colour_map"_s, name_of(magnitude_names, map));
}

void Settings::setWindow(const QByteArray& geometry, const QByteArray& layout) {
    file_.setValue(u"window/geometry"_s, geometry);
    file_.setValue(u"window/layout"_s, layout);
}

QString Settings::located(const QString& digest) const {
    const QString folder = digest.isEmpty() ? QString() : file_.value(u"located/"_s + digest).toString();
    return is_elsewhere(folder) || QFileInfo(folder).isDir() ? folder : QString();
}

void Settings::setLocated(const QString& digest, const QString& folder) {
    if (!digest.isEmpty()) {
        file_.setValue(u"located/"_s + digest, folder);
    }
}

} // namespace ponderscope
