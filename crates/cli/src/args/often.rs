//! The commands that programs call. Alone they are read without the options of all others, which a
//! process would otherwise build, and have in its memory as long as it runs.

use clap::{Parser, Subcommand};

use super::{Cli, CodeArgs, Command, ExecArgs, Global, McpCommand, RunArgs, ServeArgs};

#[derive(Debug, Parser)]
#[command(name = "glovebox", disable_help_flag = true)]
struct Often {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: OftenCommand,
}

#[derive(Debug, Subcommand)]
enum OftenCommand {
    Run(RunArgs),
    Code(CodeArgs),
    Exec(ExecArgs),
    Mcp(McpCommand),
    Serve(ServeArgs),
}

impl From<Often> for Cli {
    fn from(often: Often) -> Self {
        Self {
            global: often.global,
            command: match often.command {
                OftenCommand::Run(run) => Command::Run(run),
                OftenCommand::Code(code) => Command::Code(code),
                OftenCommand::Exec(exec) => Command::Exec(exec),
                OftenCommand::Mcp(mcp) => Command::Mcp(mcp),
                OftenCommand::Serve(serve) => Command::Serve(serve),
            },
        }
    }
}

impl Cli {
    /// What this process was called with. Help and errors are those of all commands.
    pub(crate) fn of_process() -> Result<Self, clap::Error> {
        Often::try_parse()
            .map(Self::from)
            .or_else(|_| Self::try_parse())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_often_is_understood_as_among_all_commands() {
        for line in [
            "run -- true",
            "--json run --timeout 5s -q --scratch -- sh -c ls",
            "code python file.py",
            "exec box -- true --help",
            "mcp",
            "--server http://127.0.0.1:1 run --scratch -- true",
            "serve --listen 127.0.0.1:0",
        ] {
            let words = || ["glovebox"].into_iter().chain(line.split(' '));
            let often = Often::try_parse_from(words()).map(Cli::from);
            let all = Cli::try_parse_from(words());
            let shown = |it: Result<Cli, clap::Error>| {
                format!("{:?}", it.unwrap_or_else(|error| panic!("{line}: {error}")))
            };
            assert_eq!(shown(often), shown(all));
        }
    }
}
