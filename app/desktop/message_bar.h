// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <QWidget>

#include <vector>

class QLabel;

namespace ponderscope {

class Theme;

/// Messages about errors and results, never modal. The bar lies over the bottom of the window, so the layout
/// does not move. If the pointer is there, the bar opens at the top.
class MessageBar : public QWidget {
    Q_OBJECT
public:
    /// Errors and notices stay until they are closed. A success disappears after a few seconds, or when
    /// another message is shown.
    enum class Kind { success, notice, error };
    explicit MessageBar(Theme& theme, QWidget* parent);
    /// \p id names the event ("trace.removed") whatever the sentence says. A message that is shown already is
    /// not added again. The bar keeps the last three errors and notices; an error removes the notices.
    void show(const char* id, const QString& sentence, Kind kind = Kind::error);
    void clear();
    /// Removes a message that no longer applies.
    void retract(const QString& sentence);
    [[nodiscard]] QStringList sentences() const;
    [[nodiscard]] QStringList ids() const;
    /// Whether a message of this id that contains \p part (a path, a name) is shown.
    [[nodiscard]] bool has(const char* id, const QString& part = {}) const;
    [[nodiscard]] Kind kind() const; ///< the most severe kind shown; sets the colours of the bar
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
    QLabel* label_;
    QTimer fading_;
    bool above_ = false; ///< at the top, as the pointer was at the bottom
};

} // namespace ponderscope
