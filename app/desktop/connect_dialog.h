// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/remote/host.h"
#include "views/common/task.h"

#include <QDialog>

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTreeWidget;

namespace ponderscope {

class Settings;
class Theme;

/// File > Connect: a host as ssh knows it, and the traces and checkpoints in its folders. Asks in the
/// background and says in a sentence what is wrong. Remembers hosts that answered and the folder last looked
/// at.
class ConnectDialog : public QDialog {
    Q_OBJECT
public:
    ConnectDialog(Settings& settings, const Theme& theme, QWidget* parent = nullptr);

    /// Looks at a folder there: ssh://host/folder, or a host alone.
    void look(const QString& place);
    [[nodiscard]] QString said() const;
    [[nodiscard]] bool isBusy() const { return listing_.isBusy(); }

Q_SIGNALS:
    /// A trace, the folder of a training or a checkpoint was chosen: ssh://host/path.
    void chosen(const QString& url);

private:
    struct Listing {
        QString url; ///< of the folder, as that machine calls it
        std::vector<remote::Entry> entries;
    };
    void showListing(const Listing& listing);
    void follow();
    [[nodiscard]] QString urlOf(const QString& typed) const;

    Settings& settings_;
    QComboBox* host_;
    QPushButton* connect_;
    QLineEdit* folder_;
    QTreeWidget* list_;
    QLabel* said_;
    QPushButton* open_;
    QString url_; ///< of the folder that is shown
    Task listing_{this};
};

} // namespace ponderscope
