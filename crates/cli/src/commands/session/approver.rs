//! The person before this terminal, who is asked about a session on this machine when policy wants one.

use glovebox_engine::{Dispatcher, Viewer};
use glovebox_model::{Exec, Party, Result, SpaceId, Via};
use std::sync::Arc;

use crate::context;
use crate::prompt::{Offer, Prompt, Said};

/// What came of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Answered,
    /// It goes on waiting.
    Later,
    /// The person wants nothing of it any more.
    Closed,
    /// There is no terminal to ask at.
    Nowhere,
}

pub(super) fn ask(dispatcher: &Arc<Dispatcher>, record: &Exec) -> Result<Asked> {
    let Some(id) = &record.approval_id else {
        return Ok(Asked::Answered);
    };
    let Some(prompt) = Prompt::open()? else {
        return Ok(Asked::Nowhere);
    };
    let approval = dispatcher.approval(&Viewer::of_space(SpaceId::local()), id)?;
    let answer = match prompt.answer(&approval, Offer::or_later()) {
        Said::Answer(answer) => *answer,
        Said::Closed => return Ok(Asked::Closed),
        Said::Later | Said::TooLate => return Ok(Asked::Later),
    };
    let by = Party {
        name: context::user(),
        user_id: None,
    };
    dispatcher
        .reply(&approval, by, Via::Terminal, answer)
        .map(|_| Asked::Answered)
}
