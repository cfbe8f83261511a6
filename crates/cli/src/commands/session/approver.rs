//! The person before this terminal, who is asked about a session on this machine when policy wants one.

use glovebox_engine::{Dispatcher, Viewer};
use glovebox_model::{Answer, Exec, Party, Result, SpaceId, Via};
use std::sync::Arc;

use crate::context;
use crate::prompt::{Offer, Prompt, Said};

/// Whether it was answered. Where no question would be seen it goes on waiting.
pub(super) fn ask(dispatcher: &Arc<Dispatcher>, record: &Exec) -> Result<bool> {
    let Some(id) = &record.approval_id else {
        return Ok(false);
    };
    let Some(prompt) = Prompt::open()? else {
        return Ok(false);
    };
    let approval = dispatcher.approval(&Viewer::of_space(SpaceId::local()), id)?;
    let answer = match prompt.answer(&approval, Offer::or_later()) {
        Said::Answer(answer) => *answer,
        Said::Closed => Answer::Deny {
            reason: Some("the prompt was closed".to_owned()),
        },
        Said::Later | Said::TooLate => return Ok(false),
    };
    let by = Party {
        name: context::user(),
        user_id: None,
    };
    dispatcher
        .reply(&approval, by, Via::Terminal, answer)
        .map(|_| true)
}
