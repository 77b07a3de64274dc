//! The permission engine: all rules, compiled once and immutable.
//!
//! The rules that cover a tool do not change during the engine's lifetime, so they are computed once per tool. A call
//! then costs a table lookup, the check for own files, and the conditions of its tool's rules.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::value::RawValue;
use switchboard_config::entry::{Field, Permission};
use switchboard_config::files::Folders;
use switchboard_config::policy::{HookEvent, RuleEntry};
use switchboard_config::resolve::{Config, Status};
use switchboard_config::scope::Scope;

use super::own_files::{OwnFiles, Reach};
use super::path::Base;
use super::pattern::{Names, Reading, Target};
use super::policy::{Caller, Policy};
use super::rule::{Because, Grounds, Rule, RuleProblem};
use super::secrets::{Reading as Read, Secrecy, SecretPlaces};
use super::subject::Subject;
use crate::catalog::impersonation::BUILT_INS;
use crate::catalog::{Catalog, TrustedAnnotations};
use crate::hooks::{HookList, Registration};

/// The maximum number of cached tools; beyond it the cache is cleared.
const MOST_TOOLS: usize = 1 << 16;

/// Decides about calls.
#[derive(Debug)]
pub struct Engine {
    pub(super) rules: Vec<Rule>,
    pub(super) policy: Policy,
    pub(super) own_files: OwnFiles,
    secrets: Arc<SecretPlaces>,
    /// Whether commands that no rule allows require a prompt, regardless of the policy.
    asks_before_commands: bool,
    pub(super) hooks: HookList,
    problems: Vec<RuleProblem>,
    servers: BTreeSet<String>,
    tools: RwLock<HashMap<Box<str>, Arc<ToolRules>, foldhash::fast::RandomState>>,
    fixed: FixedGrounds,
    /// The same for calls by models.
    fixed_of_models: FixedGrounds,
}

/// The rules and hooks of one tool.
#[derive(Debug)]
pub(super) struct ToolRules {
    server: Option<Box<str>>,
    tool: Box<str>,
    /// The strictest unconditional rule.
    pub(super) plain: Option<usize>,
    /// Conditional rules, strictest first.
    pub(super) conditional: Vec<usize>,
    /// Hooks that run before a call.
    pub(super) before: Vec<usize>,
    /// Hooks that run after a call.
    pub(super) after: Vec<usize>,
}

/// A decision and its grounds.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The permission.
    pub permission: Permission,
    /// The grounds.
    pub grounds: Arc<Grounds>,
}

/// Preallocated grounds.
#[derive(Debug)]
struct FixedGrounds {
    read_only: Arc<Grounds>,
    destructive: Arc<Grounds>,
    default: Arc<Grounds>,
    outside: Arc<Grounds>,
    no_sandbox: Arc<Grounds>,
}

impl Engine {
    /// Creates an engine with only a policy: no rules, no hooks, and no files to protect.
    pub fn without_rules(policy: Policy) -> Self {
        Self {
            rules: Vec::new(),
            policy,
            own_files: OwnFiles::default(),
            secrets: Arc::default(),
            asks_before_commands: false,
            hooks: HookList::default(),
            problems: Vec::new(),
            servers: BTreeSet::new(),
            tools: RwLock::default(),
            fixed: FixedGrounds::new(policy),
            fixed_of_models: FixedGrounds::new(policy.of_models()),
        }
    }

    /// Compiles the rules and hooks of a configuration.
    pub fn new(config: &Config, folders: &Folders, policy: Policy) -> Self {
        let mut engine = Self::without_rules(policy);
        engine.own_files = OwnFiles::new(folders);
        engine.secrets = Arc::new(SecretPlaces::new(folders));
        engine.servers = config
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect();
        let ready = config
            .servers
            .iter()
            .filter(|server| server.status == Status::Ready);
        for server in ready {
            let entry = server.effective();
            if let Some(folder) = &entry.cwd {
                engine.own_files.server_in(&server.name, folder.as_ref());
            }
            let stated = entry.tools.iter();
            let permissions = stated.filter_map(|(tool, stated)| Some((tool, stated.permission?)));
            for (tool, action) in permissions {
                let origin = server
                    .fields()
                    .find(|(field, _)| *field == Field::Tools)
                    .map_or_else(|| server.origin.clone(), |(_, origin)| origin);
                let rule = Rule::of_tool(&server.name, tool, action, origin);
                engine.rules.push(rule);
            }
        }
        engine.add_rules(&config.rules);
        let base = engine.own_files.base_of(None);
        engine.hooks = HookList::of_config(&config.hooks, &base.folder, &withheld(config));
        engine
    }

    /// Adds rules that do not come from the tables for all clients. `folders` is the base of relative paths in them.
    pub(super) fn with_rules(
        mut self,
        rules: &[RuleEntry],
        config: &Config,
        folders: &Folders,
    ) -> Self {
        self.own_files = OwnFiles::new(folders);
        let servers = config.servers.iter();
        self.servers = servers.map(|server| server.name.clone()).collect();
        self.add_rules(rules);
        self
    }

    fn add_rules(&mut self, entries: &[RuleEntry]) {
        let base = self.own_files.base_of(None);
        for entry in entries {
            let (rule, problems) = Rule::new(entry, base);
            self.rules.push(rule);
            self.problems.extend(problems);
        }
    }

    /// Lets tools use a folder within Switchboard's own, such as the one for truncated output.
    #[must_use]
    pub fn open_folder(mut self, folder: PathBuf) -> Self {
        if let Some(secrets) = Arc::get_mut(&mut self.secrets) {
            secrets.open(&folder);
        }
        self.own_files = self.own_files.except(folder);
        self
    }

    /// Prompts before each command that no rule allows, regardless of the policy: for systems without a sandbox to
    /// protect Switchboard's own files.
    #[doc(hidden)]
    #[must_use]
    pub fn asking_before_commands(mut self) -> Self {
        self.asks_before_commands = true;
        self
    }

    /// The paths that hold secrets, which searches skip.
    #[doc(hidden)]
    pub fn secrets(&self) -> Arc<SecretPlaces> {
        Arc::clone(&self.secrets)
    }

    /// Adds built-in hooks.
    #[doc(hidden)]
    #[must_use]
    pub fn with_hooks(mut self, hooks: impl IntoIterator<Item = Registration>) -> Self {
        self.hooks.extend(hooks);
        self
    }

    /// The problems of rules and hooks.
    pub fn problems(&self) -> impl Iterator<Item = &RuleProblem> {
        self.problems.iter().chain(self.hooks.problems())
    }

    /// All rules, starting with those of server entries.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The defaults when no rule matches.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Decides about a call of a [program](Caller::Program), without hooks and prompts.
    pub fn decide(&self, subject: &Subject<'_>, arguments: Option<&RawValue>) -> Decision {
        let rules = self.rules_of(subject);
        self.decide_by(&rules, subject, arguments, Caller::Program)
    }

    /// Rules that cover neither a tool in this catalog nor a built-in one.
    #[doc(hidden)]
    pub fn idle_rules(&self, catalog: &Catalog) -> Vec<&Rule> {
        let built_in = BUILT_INS.iter().map(|name| Subject::built_in(name));
        let subjects: Vec<Subject<'_>> =
            catalog.iter().map(Subject::from).chain(built_in).collect();
        let names: Vec<Names<'_>> = subjects.iter().map(Names::new).collect();
        let is_idle = |rule: &&Rule| !names.iter().any(|names| self.covers(rule, names));
        self.rules.iter().filter(is_idle).collect()
    }

    pub(super) fn decide_by(
        &self,
        tool: &ToolRules,
        subject: &Subject<'_>,
        arguments: Option<&RawValue>,
        caller: Caller,
    ) -> Decision {
        let base = self.own_files.base_of(subject.server);
        let read = self.secrets.read_by(subject, arguments, base);
        if let Some(because) = self.reaches_own(subject, arguments, read.as_ref()) {
            return Decision::on(Arc::new(Grounds::new(Permission::Deny, because)));
        }
        let rule = self.strictest(tool, arguments, base);
        if let Some(read) = read {
            return self.decide_about_reading(subject, rule, read, caller);
        }
        match rule {
            Some(rule) => Decision::on(Arc::clone(&rule.grounds)),
            None => self.decide_without_rule(subject, caller),
        }
    }

    /// Decides by the rules that match, without defaults and the protection of files; `None` if none matches.
    pub(super) fn decide_by_rules_alone(
        &self,
        subject: &Subject<'_>,
        arguments: Option<&RawValue>,
    ) -> Option<Decision> {
        let tool = self.rules_of(subject);
        let base = self.own_files.base_of(subject.server);
        let rule = self.strictest(&tool, arguments, base)?;
        Some(Decision::on(Arc::clone(&rule.grounds)))
    }

    /// The strictest rule of a tool whose conditions hold.
    fn strictest(
        &self,
        tool: &ToolRules,
        arguments: Option<&RawValue>,
        base: &Base,
    ) -> Option<&Rule> {
        let plain = tool.plain.and_then(|index| self.rules.get(index));
        // Sorted by strictness, so the first match is the strictest.
        let conditional = tool
            .conditional
            .iter()
            .filter_map(|index| self.rules.get(*index))
            .take_while(|rule| plain.is_none_or(|plain| rule.action > plain.action))
            .find(|rule| rule.holds(arguments, base));
        conditional.or(plain)
    }

    /// The reason to deny a call that would read or change Switchboard's own files.
    fn reaches_own(
        &self,
        subject: &Subject<'_>,
        arguments: Option<&RawValue>,
        read: Option<&Read<'_>>,
    ) -> Option<Because> {
        if let Some(read) = read {
            let argument = read.argument.clone().into_owned();
            let is_own = read.secrecy == Some(Secrecy::Own)
                || subject.server.is_none() && self.own_files.has_hard_link(&read.argument);
            // A user's server named `workspace` may have tools that write.
            if is_own || subject.server.is_none() {
                return is_own.then_some(Because::OwnSecret { argument });
            }
        }
        let reach = if is_read_only(subject) {
            Reach::Read
        } else {
            Reach::Change
        };
        let argument = self.own_files.named_by(subject, arguments, reach)?;
        let argument = argument.into_owned();
        Some(match reach {
            Reach::Read => Because::OwnSecret { argument },
            Reach::Change => Because::OwnFile { argument },
        })
    }

    /// Decides about a built-in tool that reads files.
    fn decide_about_reading(
        &self,
        subject: &Subject<'_>,
        rule: Option<&Rule>,
        read: Read<'_>,
        caller: Caller,
    ) -> Decision {
        if read.secrecy >= Some(Secrecy::Denied) {
            // A rule for the tool as a whole does not cover secret paths, nor does a rule from a repository.
            let names_it = |rule: &&Rule| {
                let scope = rule.origin.scope();
                let is_own = matches!(scope, Scope::Enterprise | Scope::Local | Scope::User);
                rule.action != Permission::Allow || is_own && !rule.tests.is_empty()
            };
            return if let Some(rule) = rule.filter(names_it) {
                Decision::on(Arc::clone(&rule.grounds))
            } else {
                let because = Because::Secret {
                    argument: read.argument.into_owned(),
                };
                Decision::on(Arc::new(Grounds::new(Permission::Deny, because)))
            };
        }
        match rule {
            Some(rule) => Decision::on(Arc::clone(&rule.grounds)),
            None if read.is_inside && read.secrecy.is_none() => {
                self.decide_without_rule(subject, caller)
            }
            None if read.is_inside => Decision::on(Arc::clone(&self.fixed(caller).default)),
            None => Decision::on(Arc::clone(&self.fixed(caller).outside)),
        }
    }

    /// The rules and hooks about a tool.
    pub(super) fn rules_of(&self, subject: &Subject<'_>) -> Arc<ToolRules> {
        let known = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tool) = known.get(subject.exposed)
            && tool.server.as_deref() == subject.server
            && &*tool.tool == subject.tool
        {
            return Arc::clone(tool);
        }
        drop(known);
        let tool = Arc::new(self.compile(subject));
        let mut known = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_TOOLS {
            known.clear();
        }
        known.insert(subject.exposed.into(), Arc::clone(&tool));
        tool
    }

    fn compile(&self, subject: &Subject<'_>) -> ToolRules {
        let names = Names::new(subject);
        let covers = |target: &Target, reading| target.covers(&names, &self.servers, reading);
        let (mut plain, mut conditional) = (None::<usize>, Vec::new());
        let action = |index: usize| self.rules.get(index).map(|rule| rule.action);
        for (index, rule) in self.rules.iter().enumerate() {
            if !covers(&rule.target, rule.reading()) {
                continue;
            }
            if !rule.is_unconditional() {
                conditional.push(index);
            } else if plain.is_none_or(|plain| Some(rule.action) > action(plain)) {
                plain = Some(index);
            }
        }
        conditional.sort_by_key(|index| std::cmp::Reverse(action(*index)));
        let hooks = |event| {
            let covered = self.hooks.of(event);
            covered
                .filter(|(_, target)| covers(target, Reading::Generous))
                .map(|(index, _)| index)
                .collect()
        };
        ToolRules {
            server: subject.server.map(Box::from),
            tool: subject.tool.into(),
            plain,
            conditional,
            before: hooks(HookEvent::PreToolUse),
            after: hooks(HookEvent::PostToolUse),
        }
    }

    fn fixed(&self, caller: Caller) -> &FixedGrounds {
        match caller {
            Caller::Program => &self.fixed,
            Caller::Model => &self.fixed_of_models,
        }
    }

    fn decide_without_rule(&self, subject: &Subject<'_>, caller: Caller) -> Decision {
        let policy = match caller {
            Caller::Program => self.policy,
            Caller::Model => self.policy.of_models(),
        };
        let fixed = self.fixed(caller);
        let is_command = subject.server.is_none() && subject.tool == "Bash";
        if is_command && self.asks_before_commands && policy.default == Permission::Allow {
            return Decision::on(Arc::clone(&fixed.no_sandbox));
        }
        if policy.annotations && policy.default < Permission::Deny {
            if is_read_only(subject) {
                return Decision::on(Arc::clone(&fixed.read_only));
            }
            if policy.default == Permission::Allow && is_destructive(subject) {
                return Decision::on(Arc::clone(&fixed.destructive));
            }
        }
        Decision::on(Arc::clone(&fixed.default))
    }

    pub(super) fn covers(&self, rule: &Rule, names: &Names<'_>) -> bool {
        rule.target.covers(names, &self.servers, rule.reading())
    }
}

fn is_read_only(subject: &Subject<'_>) -> bool {
    let annotations = subject.annotations;
    subject.is_harmless_built_in() || annotations.is_some_and(TrustedAnnotations::is_read_only)
}

fn is_destructive(subject: &Subject<'_>) -> bool {
    let annotations = subject.annotations;
    annotations.is_some_and(TrustedAnnotations::is_destructive)
}

impl Decision {
    pub(super) fn on(grounds: Arc<Grounds>) -> Self {
        Self {
            permission: grounds.permission,
            grounds,
        }
    }
}

impl FixedGrounds {
    fn new(policy: Policy) -> Self {
        let grounds = |permission, because| Arc::new(Grounds::new(permission, because));
        Self {
            read_only: grounds(Permission::Allow, Because::ReadOnly),
            destructive: grounds(Permission::Ask, Because::Destructive),
            default: grounds(policy.default, Because::Default),
            outside: grounds(policy.default, Because::Outside),
            no_sandbox: grounds(Permission::Ask, Because::NoSandbox),
        }
    }
}

/// Variables with server tokens, which hooks do not inherit.
fn withheld(config: &Config) -> Vec<String> {
    let servers = config.servers.iter();
    servers
        .filter_map(|server| server.effective().bearer_token_env_var.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_config::files::InMemory;
    use switchboard_config::resolve::Inputs;

    use super::*;
    use crate::catalog::{ListLimits, Provenance, Reach, ServerTools, ToolRules};
    use crate::json::SharedJson;

    #[test]
    fn destructive_tools_of_trusted_servers_prompt_where_others_are_allowed() {
        let page = json!({"tools": [
            {"name": "plain", "inputSchema": {"type": "object"}},
            {"name": "safe", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": false}},
            {"name": "wipe", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}},
            {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        ]});
        let policy = Policy {
            default: Permission::Allow,
            ..Policy::agent()
        };
        let engine = Engine::without_rules(policy);
        let decided = |provenance, rules: &ToolRules| {
            let tools = ServerTools::from_pages(
                &"s".into(),
                &[SharedJson::from(&page)],
                rules,
                Reach::Other,
                provenance,
                ListLimits::default(),
            );
            let tools = tools.tools().iter();
            let words = tools.map(|tool| {
                let decision = engine.decide(&Subject::from(tool), None);
                format!(
                    "{} {} {}",
                    tool.reference().tool,
                    decision.permission.name(),
                    decision.grounds.because.word()
                )
            });
            words.collect::<Vec<_>>()
        };
        let trusting = ToolRules::default().trusting_annotations();
        assert_eq!(
            decided(Provenance::Live, &trusting),
            [
                "look allow read-only",
                "plain ask destructive",
                "safe allow default",
                "wipe ask destructive",
            ]
        );
        // Neither a cached list nor a server that is not trusted decides anything.
        let all_alike =
            ["look", "plain", "safe", "wipe"].map(|tool| format!("{tool} allow default"));
        assert_eq!(decided(Provenance::Persisted, &trusting), all_alike);
        let others = ToolRules::default();
        assert_eq!(decided(Provenance::Live, &others), all_alike);
    }

    #[test]
    fn hooks_do_not_inherit_the_tokens_of_servers() {
        let text = "
            [mcp_servers.one]
            url = 'https://one.example'
            bearer_token_env_var = 'ONE_TOKEN'
            [mcp_servers.two]
            command = 'two'
            [mcp_servers.three]
            url = 'https://three.example'
            bearer_token_env_var = 'THREE_TOKEN'
        ";
        let folders = Folders {
            home: "/home".into(),
            config: "/home/config".into(),
            state: "/home/state".into(),
            project: "/project".into(),
            managed_file: None,
        };
        let inputs = Inputs {
            folders,
            ..Inputs::default()
        };
        let files = InMemory::default().file("/home/config/mcp.toml", text);
        let mut withheld = withheld(&Config::load(&inputs, &files));
        withheld.sort();
        assert_eq!(withheld, ["ONE_TOKEN", "THREE_TOKEN"]);
    }
}
