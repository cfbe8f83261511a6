//! The signals: one table, and the list that an assessment fills.

use glovebox_model::{RiskSignal, Tier};

use crate::command::Position;
use crate::outline::Origin;

/// One kind of signal, for documents and for whoever writes rules on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalKind {
    pub name: &'static str,
    pub tier: Tier,
    pub about: &'static str,
}

macro_rules! kinds {
    ($($id:ident $tier:ident $name:literal $about:literal)*) => {
        $(pub(crate) const $id: SignalKind = SignalKind {
            name: $name,
            tier: Tier::$tier,
            about: $about,
        };)*
        const ALL: &[SignalKind] = &[$($id),*];
    };
}

kinds! {
    BUILTINS Critical "builtins_access" "reaches the table of built-in functions"
    CODE_OBJECT Critical "code_object" "makes or loads compiled code"
    CONTAINER_SOCKET Critical "container_socket" "talks to a container engine"
    DESTROYS_ROOT Critical "destroys_root" "removes the root, the home or a system directory"
    DEVICE_WRITE Critical "device_write" "writes to a device"
    DISK_COPY Critical "disk_copy" "copies raw data with `dd`"
    DOWNLOAD_TO_SHELL Critical "download_to_shell" "runs what it downloads"
    DYNAMIC_ATTRIBUTE Critical "dynamic_attribute" "uses an attribute whose name is made at run time"
    DYNAMIC_EVALUATION Critical "dynamic_evaluation" "runs text as code"
    DYNAMIC_IMPORT Critical "dynamic_import" "imports a module by a computed name"
    ENCODED_PROGRAM Critical "encoded_program" "decodes text and runs it"
    FORK_BOMB Critical "fork_bomb" "starts copies of itself without end"
    KERNEL_INTERFACE Critical "kernel_interface" "changes the kernel, its modules, mounts or settings"
    KILL_ALL Critical "kill_all" "ends every process"
    MAKE_FILESYSTEM Critical "make_filesystem" "formats or partitions a disk"
    PIPE_TO_SHELL Critical "pipe_to_shell" "runs a script from a pipe"
    PROCESS_BINDING Critical "process_binding" "reaches the inner bindings of the runtime"
    PROCESS_SPAWN Critical "process_spawn" "starts another program from code"
    REVERSE_SHELL Critical "reverse_shell" "gives a shell to the network"
    SANDBOX_ESCAPE Critical "constructor_escape" "reaches code evaluation through a constructor or a class tree"

    BUILT_NAME High "built_name" "puts a dangerous name together from pieces"
    CHANGED_ENVIRONMENT High "changed_environment" "sets a variable that changes what names mean"
    CREDENTIAL_PATH High "credential_path" "names a file that holds credentials"
    DESERIALIZATION High "deserialization" "loads data that may carry code"
    DISCARDS_CHANGES High "discards_changes" "throws away uncommitted or published work"
    EVALUATION High "evaluation" "evaluates text that is only known when it runs"
    FILE_REMOVE High "file_remove" "removes files"
    FILE_RENAME High "file_rename" "moves files over others"
    FILE_SYSTEM High "file_system" "loads the file system module"
    FILE_WRITE High "file_write" "writes to a file"
    GIT_PUSH High "git_push" "publishes commits"
    INLINE_PROGRAM High "inline_program" "carries a program in a language that is not analysed"
    NATIVE_CODE High "native_code" "loads native code"
    NETWORK_CLIENT High "network_client" "talks to the network"
    PERMISSION_CHANGE High "permission_change" "changes owners or permissions"
    PERSISTENCE High "persistence" "makes something run again later"
    PRIVILEGE High "privilege" "runs with more privileges"
    PROCESS_KILL High "process_kill" "ends processes"
    SYSTEM_MODULE High "system_module" "imports a module that reaches the system"
    TOO_LARGE High "too_large" "is longer or nests deeper than is looked at"
    UNKNOWN_PROGRAM High "unknown_program" "runs a program whose name is not known"
    UNREADABLE High "unreadable" "is not a valid program"

    DATA_LOAD Medium "data_load" "parses data from a file"
    DECODES Medium "decodes" "decodes text"
    ENVIRONMENT_READ Medium "environment_read" "reads environment variables"
    FILE_READ Medium "file_read" "reads a file"
    LONG_LINE Medium "long_line" "has a very long line"
    OTHER_COMMAND Medium "other_command" "runs a command that is not on the safe list"
    PACKAGE_INSTALL Medium "package_install" "installs packages"
    REDEFINITION Medium "redefinition" "defines a function or an alias"
    RUNS_COMMANDS Medium "runs_commands" "runs a command for what it finds"
    SANDBOX_PROBE Medium "sandbox_probe" "looks for the sandbox it runs in"

    SCRIPT_FILE Low "script_file" "runs a script file, whose content is not in the request"
}

/// Every kind of signal that an assessment can name.
pub fn catalogue() -> &'static [SignalKind] {
    ALL
}

/// More signals than this help nobody; the highest tiers stay.
const MOST: usize = 64;
const MOST_OF_A_KIND: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Signals(Vec<(SignalKind, Position, Origin)>);

impl Signals {
    pub(crate) fn add(&mut self, kind: SignalKind, at: Position, origin: Origin) {
        let of_kind = self.0.iter().filter(|(it, ..)| it.name == kind.name);
        let mut number = 0;
        for (_, other, from) in of_kind {
            number += 1;
            if number >= MOST_OF_A_KIND || (*other == at && *from == origin) {
                return;
            }
        }
        self.0.push((kind, at, origin));
    }

    pub(crate) fn list(mut self) -> Vec<RiskSignal> {
        let order = |origin: &Origin| match origin {
            Origin::Program => 0,
            Origin::Argument(number) => *number,
        };
        self.0
            .sort_by_key(|(kind, ..)| std::cmp::Reverse(kind.tier));
        self.0.truncate(MOST);
        self.0.sort_by_key(|(_, at, origin)| (order(origin), *at));
        let signal = |(kind, at, origin): (SignalKind, Position, Origin)| {
            let place = format!("{}:{}", at.line, at.column);
            RiskSignal {
                name: kind.name.to_owned(),
                tier: kind.tier,
                at: Some(match origin {
                    Origin::Program => place,
                    Origin::Argument(number) => {
                        format!("{place} of the script in argument {}", number + 1)
                    }
                }),
            }
        };
        self.0.into_iter().map(signal).collect()
    }
}
