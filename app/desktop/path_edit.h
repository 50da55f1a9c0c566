// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineEdit>
#include <QString>
#include <QStringList>
#include <QToolButton>
#include <QWidget>

namespace ponderscope {

/// A path that the user types, chooses or drops.
class PathEdit : public QWidget {
    Q_OBJECT
public:
    enum class Kind { folder, openFile, saveFile };
    PathEdit(Kind kind, const QString& what, const QString& filter, QWidget* parent = nullptr);
    [[nodiscard]] QString path() const;
    void setPath(const QString& path);
    /// Offers suggested paths in a list beside the field.
    void offer(const QStringList& paths);

Q_SIGNALS:
    void changed();

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void browse();

    Kind kind_;
    QString what_;
    QString filter_;
    QLineEdit* edit_ = new QLineEdit(this);
    QToolButton* offered_ = new QToolButton(this); ///< hidden without offers
};

/// The last parts of paths, just long enough to tell the paths apart: "samples/adaponderlm".
QStringList distinct_names(const QStringList& paths);

} // namespace ponderscope
