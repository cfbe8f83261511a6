//! The person before the terminal of this very command, who is asked when policy wants one.

use glovebox_engine::{Approver, Engine};
use glovebox_model::{Answer, Approval, Call, Placement, Result};
use glovebox_policy::kind_of;

use crate::context;
use crate::prompt::{Offer, Prompt, Said};

pub(super) struct AtTerminal<'e> {
    prompt: Prompt,
    engine: &'e Engine,
    /// As it was typed, without the files that go with it.
    call: Call,
}

impl<'e> AtTerminal<'e> {
    /// `None` where nobody would see a question.
    pub(super) fn open(engine: &'e Engine, call: &mut Call) -> Result<Option<Self>> {
        let Some(prompt) = Prompt::open()? else {
            return Ok(None);
        };
        // Large files are not held twice only to say what a kind is called.
        let inputs = std::mem::take(&mut call.inputs);
        let own = call.clone();
        call.inputs = inputs;
        Ok(Some(Self {
            prompt,
            engine,
            call: own,
        }))
    }

    /// What `allow_kind` would allow, in words; empty where only the sandbox knows its workspace.
    fn kind(&self, approval: &Approval) -> Option<String> {
        let assessed = self.engine.policy().assess(self.call.clone()).ok()?;
        let kind = kind_of(&assessed, approval.ask.backend)?;
        Some(match self.call.placement {
            Placement::Fresh | Placement::Scope(_) => kind.shown,
            Placement::Named(_) => String::new(),
        })
    }
}

impl Approver for AtTerminal<'_> {
    fn ask(&self, approval: &Approval) -> Option<Answer> {
        let offer = Offer::here(approval, self.kind(approval).as_deref());
        match self.prompt.answer(approval, offer) {
            Said::Answer(answer) => Some(*answer),
            Said::Later | Said::Closed => Some(Answer::Deny {
                reason: Some("the prompt was closed".to_owned()),
            }),
            Said::TooLate => None,
        }
    }

    fn name(&self) -> String {
        context::user()
    }
}
