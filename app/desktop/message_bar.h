// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;

namespace ponderscope {

class Theme;

/// Sentences about what went wrong, above the text, until they are closed. Never a modal box: the window goes
/// on.
class MessageBar : public QWidget {
    Q_OBJECT
public:
    enum class Kind { error, notice };
    explicit MessageBar(Theme& theme, QWidget* parent = nullptr);
    /// The same sentence again changes nothing; another one is added, three at most.
    void show(const QString& sentence, Kind kind = Kind::error);
    void clear();
    /// Takes back one that is not true any more.
    void retract(const QString& sentence);
    [[nodiscard]] QStringList sentences() const { return sentences_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void restyle();
    void spell();

    Theme& theme_;
    Kind kind_ = Kind::error;
    QStringList sentences_;
    QLabel* label_;
};

} // namespace ponderscope
