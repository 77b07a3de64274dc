//! Combines the properties of a sentence into demands, each with a rule and a weight.

use super::super::Rule;
#[cfg_attr(
    not(test),
    expect(
        clippy::wildcard_imports,
        reason = "the meanings are the vocabulary of everything below"
    )
)]
use super::super::lexicon::*;
use super::Demand;
use super::sentence::{Address, Sentence, any};

/// Collects the demands of a sentence. Returns its meanings, with verbs only if they are commands.
pub(super) fn judge(sentence: &Sentence<'_>, demands: &mut Vec<Demand>) -> Meanings {
    let Some(mut judge) = Judge::new(sentence, demands) else {
        return 0;
    };
    judge.secrets();
    judge.context();
    judge.destinations();
    judge.other_tools();
    judge.faint_signs();
    judge.concealment();
    judge.overrides();
    judge.promotion();
    (judge.present & !VERBS) | judge.commanded
}

/// A sentence with the properties that several rules use.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent properties of a sentence"
)]
struct Judge<'j> {
    sentence: &'j Sentence<'j>,
    demands: &'j mut Vec<Demand>,
    present: Meanings,
    /// Verbs used as commands.
    commanded: Meanings,
    is_directive: bool,
    /// Whether something goes into a parameter: "The history is copied into `x`" is not a command, but a fact.
    is_taken_in: bool,
    reads: bool,
    gives: bool,
    runs: bool,
    changes: bool,
    is_urgent: bool,
    takes_in: bool,
    address: Option<Address>,
    /// Position of the name of another server's tool.
    foreign: Option<usize>,
}

impl<'j> Judge<'j> {
    /// Returns `None` for a sentence without demands.
    fn new(sentence: &'j Sentence<'j>, demands: &'j mut Vec<Demand>) -> Option<Self> {
        let terms = sentence.terms;
        let present = terms.iter().fold(0, |all, term| all | term.meanings);
        let is_sent = || any(present, GIVE) && (sentence.says(b"@") || sentence.says(b"://"));
        if !any(present, MATTERS) && !is_sent() {
            return None;
        }
        let commands = terms.iter().filter(|term| any(term.meanings, VERBS));
        let commanded = commands
            .filter(|term| sentence.is_commanded(term))
            .fold(0, |all, term| all | (term.meanings & VERBS));
        let is_directive = commanded != 0 || any(present, OBLIGED | REQUIRED | IDENTITY);
        let is_taken_in =
            (!sentence.is_summary || any(present, OBLIGED)) && sentence.names_parameter();
        let does = |verb: Meanings, form: Meanings| {
            any(commanded, verb) || (any(present, form) && (is_directive || is_taken_in))
        };
        let (reads, gives) = (does(READ, READING), does(GIVE, GIVING));
        let (runs, changes) = (does(RUN, RUNNING), does(CHANGE, CHANGING));
        let may_send = gives || changes || reads;
        let may_steer = runs || changes || any(present, DISPARAGE) || gives;
        Some(Self {
            sentence,
            demands,
            present,
            commanded,
            is_directive,
            is_taken_in,
            reads,
            gives,
            runs,
            changes,
            is_urgent: any(present, WHEN | OFFICIAL | REQUIRED),
            takes_in: gives && (any(present, PARAMETER) || is_taken_in),
            address: may_send.then(|| sentence.address()).flatten(),
            foreign: may_steer.then(|| sentence.foreign_tool()).flatten(),
        })
    }

    fn has(&self, wanted: Meanings) -> bool {
        any(self.present, wanted)
    }

    fn demand(&mut self, rule: Rule, weight: u8) {
        if weight > 0 {
            let weight = if self.sentence.setting.is_value {
                weight.max(3)
            } else {
                weight
            };
            self.demands.push(Demand {
                rule,
                weight,
                place: self.sentence.extent(),
            });
        }
    }

    /// Demands to read or hand over secrets.
    fn secrets(&mut self) {
        let goes_somewhere =
            self.takes_in || self.has(OUTSIDE | CONTENTS) || self.address.is_some();
        if self.has(SECRET) {
            let is_noun = self.sentence.setting.is_parameter && self.has(CONTENTS);
            let follows = any(self.sentence.before, READ) && self.has(THIS);
            self.demand(
                Rule::CollectsSecrets,
                match () {
                    () if self.gives && self.sentence.is_put_there() => 0,
                    () if self.gives && (goes_somewhere || follows) => 3,
                    () if is_noun || (self.has(REQUIRED) && self.has(CONTENTS)) => 3,
                    () if self.gives => 2,
                    () => 0,
                },
            );
            let is_demanded = self.reads || (self.runs && self.foreign.is_some());
            let is_meant =
                self.is_urgent || self.takes_in || self.foreign.is_some() || self.has(ALL);
            self.demand(
                Rule::DemandsFiles,
                when(if is_meant { 3 } else { 2 }, is_demanded),
            );
        } else if self.gives && self.has(CREDENTIAL) {
            let goes_away = self.address.is_some() || self.has(OUTSIDE);
            self.demand(
                Rule::CollectsSecrets,
                if goes_away {
                    3
                } else {
                    when(2, self.has(USER) && self.takes_in)
                },
            );
        }
        self.demand(
            Rule::CollectsSecrets,
            when(
                2,
                self.gives && self.has(PERSONAL) && self.is_urgent && self.has(ALL | USER),
            ),
        );
        let searches = self.reads
            && self.has(FILES)
            && self.is_urgent
            && (self.gives || self.has(CREDENTIAL | SECRET) || self.has(ALL));
        self.demand(Rule::DemandsFiles, when(2, searches));
        let follows = any(self.sentence.before, READ) && any(self.sentence.before, SECRET | FILES);
        self.demand(
            Rule::CollectsSecrets,
            when(
                2,
                self.gives && follows && self.has(THIS | CONTENTS) && self.takes_in,
            ),
        );
    }

    /// Demands for the conversation, the prompt or the list of tools.
    fn context(&mut self) {
        if self.has(CONTEXT) {
            let is_wanted = self.gives || (any(self.commanded, READ) && self.takes_in);
            let is_noun = self.sentence.setting.is_parameter;
            self.demand(
                Rule::Conversation,
                match () {
                    () if is_wanted && !self.sentence.is_summed_up() => 3,
                    () if is_noun && self.has(WHOLE | ALL) && !self.sentence.is_summed_up() => 3,
                    () if is_noun => 2,
                    () => 0,
                },
            );
        }
        let is_reported = self.gives || (self.runs && self.has(CONTEXT | FILES));
        let on_everything = self.has(WHEN) && self.has(ALL | OTHERS);
        self.demand(
            Rule::Conversation,
            when(3, self.has(QUESTION) && is_reported && on_everything),
        );
    }

    /// Destinations outside the user's control.
    fn destinations(&mut self) {
        if self.gives {
            let is_private = self.has(SECRET | CONTEXT | FILES | PERSONAL);
            self.demand(
                Rule::Exfiltration,
                match self.address {
                    Some(_) if is_private || (self.has(ALL) && self.has(ACTION)) => 3,
                    Some(Address::Person)
                        if self.has(ALL | OBLIGED) || self.sentence.setting.is_value =>
                    {
                        2
                    }
                    Some(_) if self.has(ALL | CONTENTS) => 2,
                    None if self.has(OUTSIDE) && is_private => 3,
                    _ => 0,
                },
            );
        }
        let shell = self.has(SHELL) && (self.runs || self.is_directive);
        self.demand(
            Rule::Exfiltration,
            when(
                if self.is_urgent || self.has(FAILURE) {
                    3
                } else {
                    2
                },
                shell,
            ),
        );
        let covers_traces = any(self.commanded, DESTROY)
            && (self.sentence.says(b"history") || self.sentence.says(b" log"));
        self.demand(
            Rule::Exfiltration,
            when(2, covers_traces && !self.sentence.is_summary),
        );
    }

    /// Instructions for using other tools.
    fn other_tools(&mut self) {
        let is_aimed = self.address.is_some() || self.has(SHELL);
        let on_all = self.sentence.is_universal();
        let is_ordered = self.has(ACTION) && self.has(OBLIGED) && self.has(ALL | WHEN);
        self.demand(
            Rule::OtherTools,
            match () {
                () if self.changes
                    && self.foreign.is_some()
                    && self.is_directive
                    && (is_aimed || self.has(TARGET)) =>
                {
                    3
                }
                () if self.changes && on_all && self.has(ACTION) && is_aimed => 3,
                () if self.changes && is_ordered && self.address == Some(Address::Person) => 3,
                () if self.changes
                    && self.has(TARGET)
                    && self.has(ALL | WHEN)
                    && self.address == Some(Address::Person) =>
                {
                    3
                }
                () if self.changes
                    && on_all
                    && self.has(TARGET)
                    && self.has(WHEN)
                    && self.sentence.says(b"tool") =>
                {
                    3
                }
                () if self.changes
                    && on_all
                    && self.has(ACTION)
                    && self.has(TARGET)
                    && self.has(OBLIGED) =>
                {
                    2
                }
                () if self.has(CONTENTS)
                    && self.has(ALL)
                    && self.gives
                    && self.foreign.is_some() =>
                {
                    3
                }
                () if on_all
                    && self.sentence.is_triggered()
                    && self.is_directive
                    && (self.runs || self.reads || self.gives) =>
                {
                    let is_grave = self.has(SECRET | CONTEXT | FILES | PERSONAL | SHELL)
                        || self.foreign.is_some();
                    if is_grave || (self.has(OFFICIAL) && self.has(OBLIGED)) {
                        3
                    } else {
                        2
                    }
                }
                () if self.has(WHEN)
                    && self.has(USER)
                    && any(self.commanded, RUN)
                    && self.foreign.is_some()
                    && self.has(OFFICIAL | GIVE) =>
                {
                    2
                }
                () => 0,
            },
        );
        let disparaged = self.foreign.is_some_and(|at| {
            let mut bad = self
                .sentence
                .terms
                .iter()
                .filter(|term| any(term.meanings, DISPARAGE));
            bad.any(|term| term.start > at && term.start < at + 60)
        });
        self.demand(
            Rule::OtherTools,
            when(
                3,
                disparaged
                    && (self.runs
                        || self.has(PREFER)
                        || self.sentence.says(b"instead")
                        || self.changes),
            ),
        );
        let is_fake_failure = self.has(FAILURE)
            && self.has(REMEDY)
            && self.commanded != 0
            && !self.sentence.is_conditional();
        self.demand(Rule::OtherTools, when(2, is_fake_failure));
    }

    /// Weak signs, of which only poisoned definitions have several.
    fn faint_signs(&mut self) {
        let is_private = self.has(CREDENTIAL | PERSONAL | QUESTION | FILES);
        let is_prose = !self.sentence.is_summary;
        self.demand(
            Rule::CollectsSecrets,
            when(
                2,
                is_prose
                    && any(self.commanded, GIVE)
                    && is_private
                    && self.is_taken_in
                    && self.has(USER | WHEN | ALL),
            ),
        );
        self.demand(
            Rule::OtherTools,
            when(
                2,
                self.has(AGENT)
                    && self.has(OBLIGED)
                    && (any(self.commanded, READ | GIVE) || self.has(SECRET | CONTEXT)),
            ),
        );
        self.demand(
            Rule::DemandsFiles,
            when(
                2,
                is_prose
                    && any(self.commanded, READ | RUN)
                    && self.has(FILES)
                    && self.has(WHEN)
                    && self.has(OBLIGED | OFFICIAL),
            ),
        );
        self.demand(
            Rule::Exfiltration,
            when(
                2,
                is_prose
                    && any(self.commanded, GIVE)
                    && (self.address.is_some() || (self.has(OUTSIDE) && self.has(CONTENTS | ALL))),
            ),
        );
        let tilde = self.sentence.terms.iter().any(|term| {
            any(term.meanings, SECRET)
                && matches!(self.sentence.text.get(term.start), Some(b'~' | b'/'))
        });
        self.demand(Rule::NamesSecrets, when(2, tilde));
        let ignores_user = any(self.commanded, NULLIFY) && self.has(USER);
        self.demand(
            Rule::OverridesInstructions,
            when(2, ignores_user && is_prose),
        );
    }

    /// Demands to conceal something from the user.
    fn concealment(&mut self) {
        let conceals = self.sentence.conceals(self.present, self.commanded);
        let is_meant =
            conceals > 0 && !self.sentence.is_limited() && !self.sentence.is_forbidden(UNASKED);
        self.demand(Rule::Conceals, when(conceals, is_meant));
    }

    /// Attempts to override earlier instructions or to claim authority.
    fn overrides(&mut self) {
        if self.has(RULES) && self.has(NULLIFY) {
            let is_told = any(self.commanded, NULLIFY) || self.has(OBLIGED);
            self.demand(
                Rule::OverridesInstructions,
                match () {
                    () if self.has(YOURS) => 4,
                    () if self.has(PRIOR) && is_told => 4,
                    () if self.has(AUTHORITY) => 3,
                    () if self.has(ALL) && is_told => 2,
                    () => 0,
                },
            );
        }
        self.demand(
            Rule::OverridesInstructions,
            when(2, self.has(RULES) && self.has(OUTDATED) && self.has(YOURS)),
        );
        self.demand(Rule::OverridesInstructions, when(2, self.has(IDENTITY)));
        self.demand(
            Rule::PseudoMarkup,
            when(
                2,
                self.has(AUTHORITY) && (self.has(UNASKED | RULES | NULLIFY) || self.gives),
            ),
        );
        let is_unasked = self.has(UNASKED) && !self.sentence.is_forbidden(UNASKED);
        self.demand(
            Rule::SkipsConsent,
            when(
                2,
                is_unasked
                    && self.is_directive
                    && (self.reads || self.gives || self.runs || self.has(AUTHORITY | AGENT))
                    && !self.sentence.is_summary,
            ),
        );
    }

    /// Attempts to be chosen over other tools.
    fn promotion(&mut self) {
        let prefers = self.has(PREFER) && self.has(OTHERS);
        self.demand(
            Rule::SelfPromotion,
            match () {
                () if prefers && self.has(PRAISE | DISPARAGE) && self.has(OBLIGED | ALL) => 3,
                () if prefers && self.has(ALL) && self.has(OBLIGED) => 3,
                () if self.has(DISPARAGE) && self.has(OTHERS) && self.has(OBLIGED) => 3,
                () => 0,
            },
        );
    }
}

/// Returns the weight if the condition holds, else 0.
const fn when(weight: u8, is_so: bool) -> u8 {
    if is_so { weight } else { 0 }
}

/// Verbs that count only as commands.
const VERBS: Meanings = READ | GIVE | RUN | CHANGE | DESTROY | OMIT | LIE | NULLIFY;

/// A sentence without any of these meanings has no demands.
const MATTERS: Meanings = SECRET
    | CREDENTIAL
    | PERSONAL
    | FILES
    | CONTEXT
    | QUESTION
    | NOT
    | OMIT
    | LIE
    | NOTICE
    | RULES
    | IDENTITY
    | AUTHORITY
    | UNASKED
    | OUTSIDE
    | TARGET
    | DISPARAGE
    | PRAISE
    | PREFER
    | FAILURE
    | SHELL
    | NULLIFY
    | ALL
    | CHANGE
    | CHANGING;
