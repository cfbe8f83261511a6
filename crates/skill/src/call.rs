//! From a skill and an input to what the engine is asked for.

use glovebox_model::{Code, Error, Input, Program, Result, SkillCall, Stage};
use serde_json::{Map, Value};

use crate::entrypoint;
use crate::skill::Skill;

/// The kernel takes no longer word.
const WORD_BYTES_MAX: usize = 128 << 10;
const INPUT_BYTES_MAX: usize = 1 << 20;

/// What a call of a skill becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    pub program: Program,
    /// The skill's own files.
    pub inputs: Vec<Input>,
    pub skill: SkillCall,
}

impl Skill {
    /// Refused, with everything that does not fit, before anything starts.
    pub fn call(&self, input: &Map<String, Value>) -> Result<Called> {
        let mut input = input.clone();
        self.fill_in(&mut input);
        let input = Value::Object(input);
        let text = input.to_string();
        if text.len() > INPUT_BYTES_MAX {
            return Err(
                refused(format!("the input is longer than {INPUT_BYTES_MAX} bytes"))
                    .hint("put large things into the workspace and name the file"),
            );
        }
        let errors = self.input_errors(&input);
        if let Some(((pointer, why), others)) = errors.split_first() {
            let place = |pointer: &str, why: &str| match pointer {
                "" => why.to_owned(),
                pointer => format!("`{pointer}`: {why}"),
            };
            let message = format!(
                "the input does not fit skill `{}`: {}",
                self.id(),
                place(pointer, why)
            );
            let mut error = Error::new(Code::InvalidInput, Stage::Parse, message);
            for (pointer, why) in others {
                error = error.hint(format!("also: {}", place(pointer, why)));
            }
            return Err(error.hint(format!(
                "`glovebox skill info {0}` and `GET /v1/skills/{0}` show what it takes",
                self.id()
            )));
        }
        let runtime = &self.manifest().runtime;
        let directory = self.reference().directory();
        let program =
            entrypoint::program(&runtime.entrypoint, &input, &directory).map_err(refused)?;
        if program
            .argv()
            .iter()
            .any(|word| word.as_bytes().len() >= WORD_BYTES_MAX)
        {
            return Err(
                refused(format!("an input is {WORD_BYTES_MAX} bytes or longer"))
                    .hint("put it into a file of the workspace"),
            );
        }
        Ok(Called {
            program,
            inputs: self.placed(),
            skill: SkillCall {
                skill: self.reference().clone(),
                input: text,
                profile: self.manifest().profile(),
                stands_for: self.stands_for().map(str::to_owned),
            },
        })
    }

    /// The tool that does the same: whoever may not use that may not use this.
    pub fn stands_for(&self) -> Option<&'static str> {
        entrypoint::stands_for(&self.manifest().runtime.entrypoint)
    }

    /// What is not given and has a `default` is given that.
    fn fill_in(&self, input: &mut Map<String, Value>) {
        let properties = self.manifest().interface.inputs.get("properties");
        for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
            if let (Some(default), false) = (schema.get("default"), input.contains_key(name)) {
                input.insert(name.clone(), default.clone());
            }
        }
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidInput, Stage::Parse, message)
}
