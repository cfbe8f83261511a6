//! `glovebox code`.

use std::io::Read;
use std::path::Path;

use glovebox_model::{ByteString, Code, Error, Program, Result, Stage};

use super::execute::execute;
use crate::args::{CodeArgs, Global, Language};
use crate::exit::Exit;

/// What fits into one argument of a program.
const LONGEST: u64 = 128 << 10;

pub(crate) fn run(global: &Global, args: CodeArgs) -> Result<Exit> {
    let code = read(args.file.as_deref())?;
    let program = match args.language {
        Language::Python => Program::Python { code },
        Language::Shell => Program::Shell { script: code },
        Language::Javascript => Program::Javascript { code },
    };
    execute(global, args.options, program)
}

fn read(file: Option<&Path>) -> Result<ByteString> {
    let invalid = |message: String| Error::new(Code::InvalidArgument, Stage::Parse, message);
    let file = file.filter(|path| *path != Path::new("-"));
    let name = file.map_or("standard input".to_owned(), |path| {
        format!("`{}`", path.display())
    });
    let mut code = Vec::new();
    let read = match file {
        Some(path) => {
            std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut code))
        }
        None => std::io::stdin()
            .lock()
            .take(LONGEST + 1)
            .read_to_end(&mut code),
    };
    read.map_err(|error| invalid(format!("cannot read {name}")).caused_by(error))?;
    if code.len() as u64 >= LONGEST {
        return Err(
            invalid(format!("the code in {name} is longer than 128 KiB"))
                .hint("put it into the workspace and run it: `glovebox run -- python3 FILE`"),
        );
    }
    ByteString::new(code).ok_or_else(|| invalid(format!("the code in {name} holds a NUL byte")))
}
