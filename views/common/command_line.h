// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLineEdit;

namespace ponderscope {

class Theme;

/// Shows the command line that does what a dialog does, with a button that copies it.
class CommandLine : public QWidget {
    Q_OBJECT
public:
    explicit CommandLine(const Theme& theme, QWidget* parent = nullptr);
    /// \p copied: what the button copies; empty: what is shown.
    void setCommand(const QString& shown, const QString& copied = {});
    [[nodiscard]] QString shown() const;
    [[nodiscard]] QString copied() const { return copied_; }
    void copy() const;

private:
    QLineEdit* edit_;
    QString copied_;
};

} // namespace ponderscope
