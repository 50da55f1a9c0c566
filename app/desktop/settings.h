// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"

#include <QSettings>

#include <memory>

namespace ponderscope {

/// Settings that persist between starts.
class Settings {
public:
    /// Uses the user's file.
    Settings();
    /// Uses another file; for tests and screenshots.
    explicit Settings(const QString& file);

    [[nodiscard]] QStringList recent() const; ///< existing traces and checkpoint folders, newest first
    void addRecent(const QString& path);
    void clearRecent();

    [[nodiscard]] Appearance appearance() const;
    void setAppearance(Appearance appearance);
    [[nodiscard]] int textSize() const;
    void setTextSize(int pixels);
    [[nodiscard]] MagnitudeMap magnitude() const;
    void setMagnitude(MagnitudeMap map);

    [[nodiscard]] QByteArray geometry() const;
    [[nodiscard]] QByteArray layout() const;
    void setWindow(const QByteArray& geometry, const QByteArray& layout);

    /// The folder to which the checkpoint with \p digest was moved; empty: unknown, or it does not exist.
    [[nodiscard]] QString located(const QString& digest) const;
    void setLocated(const QString& digest, const QString& folder);

    /// Last values of the Run dialog, by name.
    [[nodiscard]] QVariant dialog(const QString& name, const QVariant& otherwise) const;
    void setDialog(const QString& name, const QVariant& value);

private:
    std::unique_ptr<QSettings> file_;
};

} // namespace ponderscope
