// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/checkpoint_inquiry.h"
#include "app/desktop/record_command.h"

#include <QDialog>
#include <QTimer>

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QRadioButton;
class QSpinBox;

namespace ponderscope {

class CommandLine;
class PathEdit;
class Settings;
class Theme;

/// The Run dialog: asks what to record. Shows the command line, which also works without the window.
class RecordDialog : public QDialog {
    Q_OBJECT
public:
    /// \p openTrace: the shown trace, which gets the run by default; empty: none.
    RecordDialog(Settings& settings, Theme& theme, const QString& openTrace, QWidget* parent = nullptr);

    void offerCheckpoints(const QStringList& folders);
    void setRequest(const RecordRequest& request);
    [[nodiscard]] RecordRequest request() const;
    [[nodiscard]] QString problem() const;
    [[nodiscard]] QString commandLine() const;
    /// A description of the chosen folder, or an error message.
    [[nodiscard]] QString aboutCheckpoint() const;
    [[nodiscard]] QStringList offeredMethods() const; ///< "": the checkpoint's own
    [[nodiscard]] CheckpointInquiry& inquiry() { return inquiry_; }
    /// Stores the choices as defaults of the next dialog.
    void remember();

protected:
    bool event(QEvent* event) override;

private:
    void dressFields(const Theme& theme); ///< sets ranges, names, tooltips and choices
    void layOut();
    void connectFields();
    [[nodiscard]] RecordRequest lastRequest() const;
    void check();
    void inquire(); ///< requests a description of the chosen folder
    void offerMethods(const CheckpointAbout& about);
    void offerPolicies();
    [[nodiscard]] QString suggestedTrace() const;

    Settings& settings_;
    QString openTrace_;
    CheckpointInquiry inquiry_;
    CheckpointAbout known_; ///< of the last requested folder; empty until the answer
    QTimer asking_;
    PathEdit* checkpoint_; ///< and what follows: in the order of Tab
    QLabel* about_;
    QRadioButton* fromFile_;
    PathEdit* textFile_;
    QRadioButton* fromPrompt_;
    QPlainTextEdit* prompt_;
    QComboBox* method_;
    QComboBox* device_;
    QComboBox* dtype_;
    QComboBox* policy_;
    QLineEdit* more_; ///< further options
    QComboBox* level_;
    QLabel* price_;
    QSpinBox* context_;
    QSpinBox* stride_;
    QSpinBox* batch_;
    QLineEdit* name_;
    PathEdit* trace_;
    QLabel* problem_;
    CommandLine* command_;
    QPushButton* start_ = nullptr;
};

} // namespace ponderscope
