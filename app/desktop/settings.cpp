// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/settings.h"

#include "views/common/paths.h"

#include <QFileInfo>

#include <array>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr qsizetype most_kept = 12;

constexpr std::array appearance_names{
    std::pair{Appearance::system, "system"}, std::pair{Appearance::light, "light"},
    std::pair{Appearance::dark, "dark"}, std::pair{Appearance::contrast, "contrast"}};

/// The first value of \p names for a name that none of them has.
auto value_called(const auto& names, const QString& name) {
    for (const auto& [value, own] : names) {
        if (name == QLatin1String(own)) {
            return value;
        }
    }
    return names[0].first;
}

QString name_of(const auto& names, auto wanted) {
    for (const auto& [value, own] : names) {
        if (value == wanted) {
            return QLatin1String(own);
        }
    }
    return {};
}

} // namespace

Settings::Settings()
    : file_(std::make_unique<QSettings>(QSettings::IniFormat, QSettings::UserScope, u"ponderscope"_s,
                                        u"desktop"_s)) {}

Settings::Settings(const QString& file) : file_(std::make_unique<QSettings>(file, QSettings::IniFormat)) {}

QStringList Settings::recent() const {
    QStringList existing;
    const QStringList all = file_->value(u"recent"_s).toStringList();
    for (const QString& path : all) {
        if (is_elsewhere(path) || QFileInfo::exists(path)) {
            existing << path;
        }
    }
    return existing;
}

void Settings::addRecent(const QString& path) {
    QStringList all = file_->value(u"recent"_s).toStringList();
    all.removeAll(path);
    all.prepend(path);
    file_->setValue(u"recent"_s, QStringList(all.mid(0, most_kept)));
}

void Settings::clearRecent() {
    file_->remove(u"recent"_s);
}

Appearance Settings::appearance() const {
    return value_called(appearance_names, file_->value(u"appearance"_s).toString());
}

void Settings::setAppearance(Appearance appearance) {
    file_->setValue(u"appearance"_s, name_of(appearance_names, appearance));
}

int Settings::textSize() const {
    return file_->value(u"text_size"_s, 19).toInt();
}

void Settings::setTextSize(int pixels) {
    file_->setValue(u"text_size"_s, pixels);
}

MagnitudeMap Settings::magnitude() const {
    return value_called(magnitude_names, file_->value(u"colour_map"_s).toString());
}

void Settings::setMagnitude(MagnitudeMap map) {
    file_->setValue(u"colour_map"_s, name_of(magnitude_names, map));
}

QByteArray Settings::geometry() const {
    return file_->value(u"window/geometry"_s).toByteArray();
}

QByteArray Settings::layout() const {
    return file_->value(u"window/layout"_s).toByteArray();
}

void Settings::setWindow(const QByteArray& geometry, const QByteArray& layout) {
    file_->setValue(u"window/geometry"_s, geometry);
    file_->setValue(u"window/layout"_s, layout);
}

QString Settings::located(const QString& digest) const {
    const QString folder = digest.isEmpty() ? QString() : file_->value(u"located/"_s + digest).toString();
    return is_elsewhere(folder) || QFileInfo(folder).isDir() ? folder : QString();
}

void Settings::setLocated(const QString& digest, const QString& folder) {
    if (!digest.isEmpty()) {
        file_->setValue(u"located/"_s + digest, folder);
    }
}

QVariant Settings::dialog(const QString& name, const QVariant& otherwise) const {
    return file_->value(u"record/"_s + name, otherwise);
}

void Settings::setDialog(const QString& name, const QVariant& value) {
    file_->setValue(u"record/"_s + name, value);
}

} // namespace ponderscope
