// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QWidget>

namespace ponderscope {

class Theme;

/// The name of a section in small capitals ("CANDIDATES BY STEP"), or a plot's bold title with a soft remark
/// at the right ("Gate value by step steps × tokens, seq 2"). Shortens the remark first.
class PanelHeader : public QWidget {
    Q_OBJECT
public:
    enum class Kind { section, title };
    PanelHeader(const QString& title, Kind kind, Theme& theme, QWidget* parent = nullptr);

    void setRemark(const QString& remark);
    [[nodiscard]] QString title() const { return title_; }
    [[nodiscard]] QString remark() const { return remark_; }
    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString title_;
    QString remark_;
    Kind kind_;
    Theme& theme_;
};

/// Numbers at the right end of a line. Takes the remaining width, shows the beginning of a longer text, and
/// has the whole text as tooltip.
class Readout : public QLabel {
public:
    explicit Readout(Theme& theme, QWidget* parent = nullptr);
    void say(const QString& text);
    [[nodiscard]] const QString& said() const { return said_; }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QString said_;
};

} // namespace ponderscope
