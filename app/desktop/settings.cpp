// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/settings.h"

#include "views/common/paths.h"

#include <QFileInfo>

#include <array>
#include <utility>

namespace ponderscope {

namespace {

constexpr qsizetype most_kept = 12;

} // namespace

Settings::Settings()
    : file_(std::make_unique<QSettings>(QSettings::IniFormat, QSettings::UserScope,
                                        QStringLiteral("ponderscope"), QStringLiteral("desktop"))) {}

Settings::Settings(const QString& file) : file_(std::make_unique<QSettings>(file, QSettings::IniFormat)) {}

QStringList Settings::recent() const {
    QStringList existing;
    const QStringList all = file_->value(QStringLiteral("recent")).toStringList();
    for (const QString& path : all) {
        if (is_elsewhere(path) || QFileInfo::exists(path)) {
            existing << path;
        }
    }
    return existing;
}

void Settings::addRecent(const QString& path) {
    QStringList all = file_->value(QStringLiteral("recent")).toStringList();
    all.removeAll(path);
    all.prepend(path);
    file_->setValue(QStringLiteral("recent"), QStringList(all.mid(0, most_kept)));
}

void Settings::clearRecent() {
    file_->remove(QStringLiteral("recent"));
}

Appearance Settings::appearance() const {
    const QString name = file_->value(QStringLiteral("appearance")).toString();
    return name == QLatin1String("light")      ? Appearance::light
           : name == QLatin1String("dark")     ? Appearance::dark
           : name == QLatin1String("contrast") ? Appearance::contrast
                                               : Appearance::system;
}

void Settings::setAppearance(Appearance appearance) {
    file_->setValue(QStringLiteral("appearance"), appearance == Appearance::light  ? QStringLiteral("light")
                                                  : appearance == Appearance::dark ? QStringLiteral("dark")
                                                  : appearance == Appearance::contrast
                                                      ? QStringLiteral("contrast")
                                                      : QStringLiteral("system"));
}

int Settings::textSize() const {
    return file_->value(QStringLiteral("text_size"), 19).toInt();
}

void Settings::setTextSize(int pixels) {
    file_->setValue(QStringLiteral("text_size"), pixels);
}

namespace {

constexpr std::array magnitude_names{
    std::pair{MagnitudeMap::viridis, "viridis"}, std::pair{MagnitudeMap::cividis, "cividis"},
    std::pair{MagnitudeMap::magma, "magma"}, std::pair{MagnitudeMap::grey, "grey"}};

} // namespace

MagnitudeMap Settings::magnitude() const {
    const QString stored = file_->value(QStringLiteral("colour_map")).toString();
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
            file_->setValue(QStringLiteral("colour_map"), QLatin1String(name));
        }
    }
}

QByteArray Settings::geometry() const {
    return file_->value(QStringLiteral("window/geometry")).toByteArray();
}

QByteArray Settings::layout() const {
    return file_->value(QStringLiteral("window/layout")).toByteArray();
}

void Settings::setWindow(const QByteArray& geometry, const QByteArray& layout) {
    file_->setValue(QStringLiteral("window/geometry"), geometry);
    file_->setValue(QStringLiteral("window/layout"), layout);
}

QString Settings::located(const QString& digest) const {
    const QString folder =
        digest.isEmpty() ? QString() : file_->value(QStringLiteral("located/") + digest).toString();
    return is_elsewhere(folder) || QFileInfo(folder).isDir() ? folder : QString();
}

void Settings::setLocated(const QString& digest, const QString& folder) {
    if (!digest.isEmpty()) {
        file_->setValue(QStringLiteral("located/") + digest, folder);
    }
}

QVariant Settings::dialog(const QString& name, const QVariant& otherwise) const {
    return file_->value(QStringLiteral("record/") + name, otherwise);
}

void Settings::setDialog(const QString& name, const QVariant& value) {
    file_->setValue(QStringLiteral("record/") + name, value);
}

RunSettings Settings::runSettings(const QString& of) const {
    return {.steps = file_->value(of + QStringLiteral("/steps"), 0).toInt(),
            .kv = file_->value(of + QStringLiteral("/kv")).toString(),
            .startState = file_->value(of + QStringLiteral("/start-state")).toString()};
}

void Settings::setRunSettings(const QString& of, const RunSettings& settings) {
    file_->setValue(of + QStringLiteral("/steps"), settings.steps);
    file_->setValue(of + QStringLiteral("/kv"), settings.kv);
    file_->setValue(of + QStringLiteral("/start-state"), settings.startState);
}

} // namespace ponderscope
