// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"

#include <QSettings>

#include <optional>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// The appearance with this name: "system", "light", "dark" or "contrast".
std::optional<Appearance> appearance_called(const QString& name);

/// Settings that persist between starts.
class Settings {
public:
    /// Uses the user's file.
    Settings() : file_(QSettings::IniFormat, QSettings::UserScope, u"ponderscope"_s, u"desktop"_s) {}
    /// Uses another file; for tests and screenshots.
    explicit Settings(const QString& file) : file_(file, QSettings::IniFormat) {}

    [[nodiscard]] QStringList recent() const; ///< existing traces and checkpoint folders, newest first
    void addRecent(const QString& path);
    void clearRecent() { file_.remove(u"recent"_s); }

    [[nodiscard]] Appearance appearance() const;
    void setAppearance(Appearance appearance);
    [[nodiscard]] int textSize() const { return file_.value(u"text_size"_s, 19).toInt(); }
    void setTextSize(int pixels) { file_.setValue(u"text_size"_s, pixels); }
    [[nodiscard]] MagnitudeMap magnitude() const;
    void setMagnitude(MagnitudeMap map);

    [[nodiscard]] QByteArray geometry() const { return file_.value(u"window/geometry"_s).toByteArray(); }
    [[nodiscard]] QByteArray layout() const { return file_.value(u"window/layout"_s).toByteArray(); }
    void setWindow(const QByteArray& geometry, const QByteArray& layout);

    /// The folder to which the checkpoint with \p digest was moved. Empty: unknown, or no longer a folder.
    [[nodiscard]] QString located(const QString& digest) const;
    void setLocated(const QString& digest, const QString& folder);

    /// Last values of dialogs, by name.
    [[nodiscard]] QString dialog(const QString& name, const QString& otherwise = {}) const {
        return file_.value(u"record/"_s + name, otherwise).toString();
    }
    void setDialog(const QString& name, const QString& value) { file_.setValue(u"record/"_s + name, value); }

private:
    QSettings file_;
};

} // namespace ponderscope
