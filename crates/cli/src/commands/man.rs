//! `glovebox man`.

use clap::CommandFactory;
use clap_mangen::Man;
use glovebox_model::{Code, Error, Result, Stage};

use crate::args::{Cli, ManArgs};
use crate::exit::Exit;
use crate::stdout;

pub(crate) fn run(args: &ManArgs) -> Result<Exit> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        let rendered = Man::new(Cli::command()).render(&mut page);
        rendered.map_err(|error| {
            Error::new(Code::Internal, Stage::Close, "cannot make the page").caused_by(error)
        })?;
        stdout::write(&page)?;
        return Ok(Exit::SUCCESS);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .map_err(|error| {
            let shown = dir.display();
            Error::new(
                Code::InvalidArgument,
                Stage::Close,
                format!("cannot write the manual pages into `{shown}`"),
            )
            .caused_by(error)
        })?;
    Ok(Exit::SUCCESS)
}
