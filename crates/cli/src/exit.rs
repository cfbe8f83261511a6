//! Exit codes: the program's own, or one that says whose turn it is.

use std::process::ExitCode;

use glovebox_model::{Code, Error, Exec, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const FAILURE: Self = Self(1);
    const USAGE: Self = Self(2);
    pub(crate) const REFUSED: Self = Self(3);
    const TIMED_OUT: Self = Self(124);
    const OURS: Self = Self(125);
    const NOT_EXECUTABLE: Self = Self(126);
    const NOT_FOUND: Self = Self(127);
    const KILLED: Self = Self(137);
    const CANCELED: Self = Self(130);
    const HELD: Self = Self(6);
    const WAITING: Self = Self(5);

    pub(crate) fn of_record(record: &Exec) -> Self {
        match record.status {
            Status::Succeeded => Self::SUCCESS,
            Status::Failed => match (record.exit_code, record.signal, &record.error) {
                (Some(code), ..) => Self(u8::try_from(code).unwrap_or(Self::OURS.0)),
                (None, Some(signal), _) => Self(u8::try_from(128 + signal).unwrap_or(Self::OURS.0)),
                (None, None, Some(error)) => Self::of_error(error),
                (None, None, None) => Self::OURS,
            },
            Status::TimedOut => Self::TIMED_OUT,
            Status::Killed => Self::KILLED,
            Status::Canceled => Self::CANCELED,
            Status::PolicyDenied => Self::REFUSED,
            Status::Held => Self::HELD,
            Status::AwaitingApproval => Self::WAITING,
            Status::Queued | Status::Running | Status::Lost | Status::Error => Self::OURS,
        }
    }

    pub(crate) fn of_error(error: &Error) -> Self {
        match error.code {
            Code::PolicyDenied => Self::REFUSED,
            Code::InvalidArgument
            | Code::InvalidConfig
            | Code::WorkspaceRefused
            | Code::Conflict => Self::USAGE,
            Code::CommandNotFound => Self::NOT_FOUND,
            Code::CommandNotExecutable | Code::CwdNotFound => Self::NOT_EXECUTABLE,
            Code::Canceled => Self::CANCELED,
            Code::NotFound => Self::FAILURE,
            Code::Busy
            | Code::BackendUnavailable
            | Code::DiskFull
            | Code::Internal
            | Code::LedgerTampered
            | Code::Lost
            | Code::SetupFailed
            | Code::StoreUnavailable => Self::OURS,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}
