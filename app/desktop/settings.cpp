// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/settings.h"

#include <QFileInfo>

namespace ponderscope {

namespace {

constexpr qsizetype most_recent = 12;

} // namespace

Settings::Settings()
    : file_(std::make_unique<QSettings>(QSettings::IniFormat, QSettings::UserScope,
                                        QStringLiteral("ponderscope"), QStringLiteral("desktop"))) {}

Settings::Settings(const QString& file) : file_(std::make_unique<QSettings>(file, QSettings::IniFormat)) {}

QStringList Settings::recent() const {
    QStringList existing;
    const QStringList all = file_->value(QStringLiteral("recent")).toStringList();
    for (const QString& path : all) {
        if (QFileInfo::exists(path)) {
            existing << path;
        }
    }
    return existing;
}

void Settings::addRecent(const QString& path) {
    QStringList all = file_->value(QStringLiteral("recent")).toStringList();
    all.removeAll(path);
    all.prepend(path);
    file_->setValue(QStringLiteral("recent"), QStringList(all.mid(0, most_recent)));
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

MagnitudeMap Settings::magnitude() const {
    return file_->value(QStringLiteral("colour_map")).toString() == QLatin1String("cividis")
               ? MagnitudeMap::cividis
               : MagnitudeMap::viridis;
}

void Settings::setMagnitude(MagnitudeMap map) {
    file_->setValue(QStringLiteral("colour_map"),
                    map == MagnitudeMap::cividis ? QStringLiteral("cividis") : QStringLiteral("viridis"));
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

QVariant Settings::dialog(const QString& name, const QVariant& otherwise) const {
    return file_->value(QStringLiteral("record/") + name, otherwise);
}

void Settings::setDialog(const QString& name, const QVariant& value) {
    file_->setValue(QStringLiteral("record/") + name, value);
}

} // namespace ponderscope
