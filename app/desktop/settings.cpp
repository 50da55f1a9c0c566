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
    const QString name = file_->value(u"appearance"_s).toString();
    return name == QLatin1String("light")      ? Appearance::light
           : name == QLatin1String("dark")     ? Appearance::dark
           : name == QLatin1String("contrast") ? Appearance::contrast
                                               : Appearance::system;
}

void Settings::setAppearance(Appearance appearance) {
    file_->setValue(u"appearance"_s, appearance == Appearance::light      ? u"light"_s
                                     : appearance == Appearance::dark     ? u"dark"_s
                                     : appearance == Appearance::contrast ? u"contrast"_s
                                                                          : u"system"_s);
}

int Settings::textSize() const {
    return file_->value(u"text_size"_s, 19).toInt();
}

void Settings::setTextSize(int pixels) {
    file_->setValue(u"text_size"_s, pixels);
}

namespace {

constexpr std::array magnitude_names{
    std::pair{MagnitudeMap::viridis, "viridis"}, std::pair{MagnitudeMap::cividis, "cividis"},
    std::pair{MagnitudeMap::magma, "magma"}, std::pair{MagnitudeMap::grey, "grey"}};

} // namespace

MagnitudeMap Settings::magnitude() const {
    const QString stored = file_->value(u"colour_map"_s).toString();
    for (const auto& [map, name] : magnitude_names) {
        if (stored == QLatin1String(name)) {
            return map;
        }
    }
    return MagnitudeMap::viridis;
}

void Settings::setMagnitude(MagnitudeMap map) {
    for (const auto& [known, name] : magnitude_names) {
        if (known == map) {
            file_->setValue(u"colour_map"_s, QLatin1String(name));
        }
    }
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
