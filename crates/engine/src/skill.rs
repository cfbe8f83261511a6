//! What a skill's program is given beside its arguments: its input, in a file that is its own and
//! goes with it, and the directory where the skill's files lie.

use std::borrow::Cow;

use glovebox_model::{
    ByteString, Call, Code, Correlation, Error, ExecId, Input, Result, SkillRef, Stage,
};
use glovebox_policy::{SkillSettings, ToolAnswer};
use glovebox_workspace::skill_input;

use crate::Dispatcher;

impl Dispatcher {
    /// Which skills the operator wants here.
    pub fn skill_settings(&self) -> &SkillSettings {
        self.engine().config().skills()
    }

    /// Whether a tool exists for these ids, which must be known to be true.
    pub fn tool(&self, ids: &Correlation, name: &str) -> ToolAnswer {
        self.engine().config().tools_for(ids).check(name)
    }
}

const INPUTS: &str = "/workspace/inputs";

/// The call's inputs, and of a skill the one that it was called with.
pub(crate) fn inputs<'c>(call: &'c Call, exec: &ExecId) -> Cow<'c, [Input]> {
    let Some(called) = &call.skill else {
        return Cow::Borrowed(&call.inputs);
    };
    let mut inputs = call.inputs.clone();
    inputs.push(Input {
        path: text(&skill_input(exec)),
        content: called.input.clone().into_bytes(),
    });
    Cow::Owned(inputs)
}

/// What lies where skills' files lie came from a skill: nobody else puts anything there.
pub(crate) fn check_inputs(call: &Call) -> Result<()> {
    let taken = |input: &&Input| {
        let path = input.path.as_bytes();
        let first = path
            .split(|byte| *byte == b'/')
            .find(|part| !matches!(part, [] | [b'.']));
        first == Some(b"skill")
    };
    match call.inputs.iter().find(taken) {
        Some(input) if call.skill.is_none() => {
            let message = format!("input path `{}` is a skill's", input.path.one_line());
            Err(Error::new(Code::Conflict, Stage::Resolve, message)
                .hint("choose another name than `skill` for the directory"))
        }
        _ => Ok(()),
    }
}

/// Where the program finds both.
pub(crate) fn variables(skill: &SkillRef, exec: &ExecId) -> [(ByteString, ByteString); 2] {
    let path = |below: &str| text(&format!("{INPUTS}/{below}"));
    [
        (text("GLOVEBOX_SKILL_INPUT"), path(&skill_input(exec))),
        (text("GLOVEBOX_SKILL_DIR"), path(&skill.directory())),
    ]
}

fn text(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap_or_default()
}
