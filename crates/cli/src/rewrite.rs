//! A program as a text that a person may write anew: code as it is, the words of a command as a
//! JSON array, which leaves no doubt where one ends.

use glovebox_model::{ByteString, Code, Error, Program, Result, Stage};

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Words,
    Shell,
    Python,
    Javascript,
}

impl Form {
    /// For an editor, which tells languages by names.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Words => ".json",
            Self::Shell => ".sh",
            Self::Python => ".py",
            Self::Javascript => ".js",
        }
    }
}

/// What was asked, from the words that people are shown.
pub(crate) fn text(argv: &[String]) -> (Form, String) {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bash", "-lc", script] => (Form::Shell, (*script).to_owned()),
        ["python3", "-c", code] => (Form::Python, (*code).to_owned()),
        ["node", "-e", code] => (Form::Javascript, (*code).to_owned()),
        words => {
            let text = serde_json::to_string_pretty(words).unwrap_or_default();
            (Form::Words, text + "\n")
        }
    }
}

pub(crate) fn program(form: Form, text: &str) -> Result<Program> {
    let bytes = |text: &str| {
        ByteString::new(text.as_bytes()).ok_or_else(|| invalid("the program holds a NUL byte"))
    };
    if text.trim().is_empty() {
        return Err(invalid("the program is empty").hint("to say no, deny it"));
    }
    match form {
        Form::Shell => Ok(Program::Shell {
            script: bytes(text)?,
        }),
        Form::Python => Ok(Program::Python { code: bytes(text)? }),
        Form::Javascript => Ok(Program::Javascript { code: bytes(text)? }),
        Form::Words => {
            let words: Vec<String> = serde_json::from_str(text).map_err(|error| {
                invalid("the command is no JSON array of words")
                    .caused_by(error)
                    .hint("write it as `[\"make\", \"test\"]`")
            })?;
            let mut words = words.iter().map(|word| bytes(word));
            let command = words.next().transpose()?;
            let command = command.filter(|it| !it.as_bytes().is_empty());
            Ok(Program::Argv {
                command: command.ok_or_else(|| invalid("the command has no words"))?,
                args: words.collect::<Result<_>>()?,
            })
        }
    }
}

fn invalid(message: &str) -> Error {
    Error::new(Code::InvalidArgument, Stage::Parse, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_nobody_changed_is_the_same() {
        let bytes = |text: &str| ByteString::try_from(text).unwrap();
        for program in [
            Program::Shell {
                script: bytes("ls\nrm x"),
            },
            Program::Python {
                code: bytes("print(1)"),
            },
            Program::Javascript { code: bytes("1") },
            Program::Argv {
                command: bytes("make"),
                args: vec![bytes("a b"), bytes("'\"\n"), bytes("")],
            },
        ] {
            let argv: Vec<String> = program.argv().iter().map(|it| it.display()).collect();
            let (form, text) = text(&argv);
            assert_eq!(super::program(form, &text).unwrap(), program);
        }
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for (form, text) in [
            (Form::Shell, " \n"),
            (Form::Python, "a\0b"),
            (Form::Words, "make test"),
            (Form::Words, "[]"),
            (Form::Words, "[\"\"]"),
            (Form::Words, "[1]"),
        ] {
            assert!(program(form, text).is_err(), "{text:?}");
        }
    }
}
