//! From a plan to its receipt: the one way that every exec goes.

use glovebox_backend::TeardownGuard;
use glovebox_model::{Call, Code, Consent, Error, Exec, Mode, Result, Stage};
use glovebox_store::Opened as Entry;
use glovebox_workspace::Project;

use super::{
    CallWithConsent, CommandSource, Draft, Opened, Plan, Planned, SandboxSource, end, failed,
};
use crate::engine::{Engine, Io, KeeperSlot};
use crate::settings::ToolchainSettings;
use crate::stage;

/// What those who run execs do differently on the way.
pub(crate) trait Runner {
    /// Where its sandbox comes from.
    fn supply(&mut self) -> Result<&mut dyn SandboxSource>;

    /// Makes the intent durable: nothing starts before it is. `refused` is why there is no sandbox for
    /// it. None: it is not to be started here.
    fn open(&mut self, plan: &mut Plan, refused: Option<&Error>) -> Result<Option<Entry>>;

    /// What it reads, and who hears of it.
    fn io(&mut self) -> Io<'_>;
}

/// What became of a plan.
#[derive(Debug)]
pub(crate) enum Walked {
    /// It has its receipt. The second value may be dropped once the caller has its answer: the kernel
    /// still tidies up.
    Ended(Box<Exec>, TeardownGuard),
    /// Its intent was not written, and nothing is left of it; with the reason where there was no sandbox
    /// for it.
    NotOpened(Box<Plan>, Option<Error>),
}

impl Engine {
    /// An error: its intent, or its outcome, could not be written.
    pub(crate) fn walk(
        &self,
        mut plan: Plan,
        project: Project,
        settings: &ToolchainSettings,
        runner: &mut dyn Runner,
    ) -> Result<Walked> {
        // The sandbox is built while the intent is written.
        let prepared = stage::span("admit").in_scope(|| {
            let supply = runner.supply()?;
            self.prepare(supply, &plan, project, settings)
        });
        stage::reached("build");
        let opened = runner.open(&mut plan, prepared.as_ref().err());
        let entry = match (opened, prepared) {
            (Ok(Some(entry)), Ok(prepared)) => {
                stage::reached("open");
                let opened = Opened::new(plan, entry);
                return self.execute(prepared, opened, settings, runner.io());
            }
            (Ok(Some(entry)), Err(error)) => (entry, error),
            (Ok(None), Err(error)) => return Ok(Walked::NotOpened(Box::new(plan), Some(error))),
            (opened, prepared) => {
                if let Ok(prepared) = prepared {
                    prepared.discard();
                }
                return opened.map(|_| Walked::NotOpened(Box::new(plan), None));
            }
        };
        let (entry, error) = entry;
        let record = failed(plan.record().clone(), error);
        let record = end(self.store()?, entry, record, runner.io().again)?;
        Ok(Walked::Ended(Box::new(record), TeardownGuard::nothing()))
    }

    /// The end of a plan of which only policy was asked: nothing runs, and that is on record.
    pub(crate) fn mock(&self, plan: Plan, entry: Entry) -> Result<Exec> {
        let (entry, record) = Opened::new(plan, entry).mocked();
        end(self.store()?, entry, record, None)
    }

    /// Walks the whole path for one command. A refusal is a record too; an error means that there is
    /// none.
    pub fn run(
        &self,
        seat: KeeperSlot,
        call: Call,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let (project, draft, plan) = self.receive(call.clone())?;
        let plan = plan.and_then(|planned| match planned {
            Planned::Ready(plan) => Ok(*plan),
            Planned::Asks(approval_request) => {
                self.ask_here(&draft, &project, call, *approval_request, io.approver)
            }
        });
        let mut plan = match plan {
            Ok(plan) => plan,
            Err(error) => return self.refuse(&draft, error),
        };
        if plan.assessed().call().mode == Mode::Mock {
            let entry = self.write_intent(&mut plan)?;
            return self.mock(plan, entry);
        }
        let is_kept = plan.assignment().is_some();
        let walked = self.run_planned(seat, plan, project, settings, io);
        if is_kept {
            self.registry.leave();
        }
        walked.or_else(|error| match error.stage {
            // It ran, and what it printed and left is there, though not its record.
            Stage::Close => Err(error.of_exec(draft.exec_id.clone())),
            _ => self.refuse(&draft, error.of_exec(draft.exec_id.clone())),
        })
    }

    /// A program of the operator's own configuration: what policy denies it still does not do.
    pub(crate) fn run_agreed(
        &self,
        seat: KeeperSlot,
        call: Call,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let project = self.workspaces.project(&call)?;
        let draft = Draft::new(&call, project.id().clone())?;
        let wanted = CallWithConsent {
            consent: Some(Consent::of_policy()),
            of_gate: true,
            ..CallWithConsent::of(call)
        };
        match self.plan(&draft, &project, wanted)? {
            Planned::Ready(plan) => self.run_planned(seat, *plan, project, settings, io),
            Planned::Asks(_) => {
                let message = "a person would have to agree to a gate's command";
                Err(Error::new(Code::ApprovalUnavailable, Stage::Judge, message))
            }
        }
    }

    fn run_planned(
        &self,
        seat: KeeperSlot,
        plan: Plan,
        project: Project,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Exec> {
        let supply = CommandSource {
            seat: Some(seat),
            cancel: io.cancel,
        };
        let mut command = Command {
            engine: self,
            supply,
            io,
        };
        match self.walk(plan, project, settings, &mut command)? {
            Walked::Ended(record, _) => Ok(*record),
            Walked::NotOpened(_, Some(error)) => Err(error),
            Walked::NotOpened(_, None) => {
                let message = "it was not started";
                Err(Error::new(Code::Internal, Stage::Open, message))
            }
        }
    }

    fn write_intent(&self, plan: &mut Plan) -> Result<Entry> {
        plan.begin();
        let call = plan.assessed().call();
        self.secrets.masks_for(&call.ids, call.vouched, &[])?;
        let owner = self.instance.owner().id();
        stage::span("open").in_scope(|| self.store()?.plan(owner, plan.record()))
    }
}

/// A process that runs one exec, and waits for it.
struct Command<'e, 'run> {
    engine: &'e Engine,
    supply: CommandSource<'run>,
    io: Io<'run>,
}

impl Runner for Command<'_, '_> {
    fn supply(&mut self) -> Result<&mut dyn SandboxSource> {
        Ok(&mut self.supply)
    }

    fn open(&mut self, plan: &mut Plan, refused: Option<&Error>) -> Result<Option<Entry>> {
        if refused.is_some() {
            return Ok(None);
        }
        if let Some(unused) = self.supply.seat.take() {
            let keepers = self.engine.instance.backends().keepers();
            keepers.share(unused.native);
        }
        self.engine.write_intent(plan).map(Some)
    }

    fn io(&mut self) -> Io<'_> {
        let io = &mut self.io;
        Io {
            stdin: io.stdin.take(),
            live: &mut *io.live,
            cancel: io.cancel,
            control: io.control,
            stopped: io.stopped,
            approver: io.approver,
            effects: io.effects.clone(),
            replayable: io.replayable,
            seats: io.seats,
            again: io.again,
        }
    }
}
