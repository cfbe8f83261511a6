//! The person at the terminal, when there is one.

use glovebox_model::{Answer, Approval};

/// Who is asked by a process that runs one exec itself.
pub trait Approver {
    /// `None`: nobody answered, which is a no.
    fn ask(&self, approval: &Approval) -> Option<Answer>;

    /// As the record tells who answered.
    fn name(&self) -> String;
}
