// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QTimer>
#include <QWidget>

#include <vector>

namespace ponderscope {

class Theme;

/// Messages about errors and results, never modal. The bar covers the window's bottom; the layout stays.
class MessageBar : public QWidget {
    Q_OBJECT
public:
    /// Errors and notices stay until the user closes them. A success fades, or ends with the next message.
    enum class Kind { success, notice, error };
    explicit MessageBar(Theme& theme, QWidget* parent);
    /// \p id identifies the kind of event ("trace.removed"). Ignores a message that is already shown. The bar
    /// keeps the last three errors and notices. An error removes all notices.
    void show(const char* id, const QString& sentence, Kind kind = Kind::error);
    void clear();
    /// Removes a message that no longer applies.
    void retract(const QString& sentence);
    [[nodiscard]] QStringList sentences() const;
    [[nodiscard]] QStringList ids() const;
    /// Whether the bar shows a message with this id that contains \p part (a path, a name).
    [[nodiscard]] bool has(const char* id, const QString& part = {}) const;
    [[nodiscard]] Kind kind() const; ///< the most severe of the shown kinds; sets the colours
    void setSuccessTime(int milliseconds) { fading_.setInterval(milliseconds); }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Message {
        QString id;
        QString sentence;
        Kind kind;
    };
    void refresh();
    void place();

    Theme& theme_;
    std::vector<Message> messages_;
    QLabel* label_ = new QLabel(this);
    QTimer fading_;
    bool above_ = false; ///< the bar is at the top, because the pointer is at the bottom
};

} // namespace ponderscope
