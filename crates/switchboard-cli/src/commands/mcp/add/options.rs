//! The options of `mcp add`, in the spellings of all supported tools.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    Transport,
    Scope,
    Env,
    Header,
    Url,
    BearerTokenEnvVar,
    ClientId,
    ClientSecret,
    ClientSecretValue,
    CallbackPort,
    OAuthResource,
    OAuthRegistration,
    Timeout,
    IncludeTools,
    ExcludeTools,
    Trust,
    Description,
    Force,
    Cwd,
    Config,
    NoProject,
    TrustProject,
    Json,
    Quiet,
    Verbose,
    Color,
}

/// Whether other tools know an option, or only this program. After the first word of a command, only options that other
/// tools know are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Elsewhere,
    OnlyHere,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Opt {
    pub(super) name: Name,
    pub(super) takes_value: bool,
    pub(super) known: Known,
    spellings: &'static [&'static str],
}

const fn opt(
    name: Name,
    takes_value: bool,
    known: Known,
    spellings: &'static [&'static str],
) -> Opt {
    Opt {
        name,
        takes_value,
        known,
        spellings,
    }
}

const OPTIONS: &[Opt] = &[
    opt(
        Name::Transport,
        true,
        Known::Elsewhere,
        &["-t", "--transport", "--type"],
    ),
    opt(Name::Scope, true, Known::Elsewhere, &["-s", "--scope"]),
    opt(Name::Env, true, Known::Elsewhere, &["-e", "--env"]),
    opt(Name::Header, true, Known::Elsewhere, &["-H", "--header"]),
    opt(Name::Url, true, Known::Elsewhere, &["--url"]),
    opt(
        Name::BearerTokenEnvVar,
        true,
        Known::Elsewhere,
        &["--bearer-token-env-var"],
    ),
    opt(
        Name::ClientId,
        true,
        Known::Elsewhere,
        &["--client-id", "--oauth-client-id"],
    ),
    opt(
        Name::ClientSecret,
        false,
        Known::Elsewhere,
        &["--client-secret"],
    ),
    opt(
        Name::ClientSecretValue,
        true,
        Known::Elsewhere,
        &["--oauth-client-secret"],
    ),
    opt(
        Name::CallbackPort,
        true,
        Known::Elsewhere,
        &["--callback-port"],
    ),
    opt(
        Name::OAuthResource,
        true,
        Known::Elsewhere,
        &["--oauth-resource"],
    ),
    opt(
        Name::OAuthRegistration,
        true,
        Known::Elsewhere,
        &["--oauth-client-registration"],
    ),
    opt(Name::Timeout, true, Known::Elsewhere, &["--timeout"]),
    opt(
        Name::IncludeTools,
        true,
        Known::Elsewhere,
        &["--include-tools"],
    ),
    opt(
        Name::ExcludeTools,
        true,
        Known::Elsewhere,
        &["--exclude-tools"],
    ),
    opt(Name::Trust, false, Known::Elsewhere, &["--trust"]),
    opt(
        Name::Description,
        true,
        Known::Elsewhere,
        &["--description"],
    ),
    opt(Name::Force, false, Known::OnlyHere, &["--force"]),
    opt(Name::Cwd, true, Known::OnlyHere, &["--cwd"]),
    opt(Name::Config, true, Known::OnlyHere, &["--config"]),
    opt(Name::NoProject, false, Known::OnlyHere, &["--no-project"]),
    opt(
        Name::TrustProject,
        false,
        Known::OnlyHere,
        &["--trust-project"],
    ),
    opt(Name::Json, false, Known::OnlyHere, &["--json"]),
    opt(Name::Quiet, false, Known::OnlyHere, &["--quiet"]),
    opt(Name::Verbose, false, Known::OnlyHere, &["-v", "--verbose"]),
    opt(Name::Color, true, Known::OnlyHere, &["--color"]),
];

/// Finds the option that a word spells, and its value after `=`.
pub(super) fn find(word: &str) -> Option<(&'static Opt, Option<&str>)> {
    let (spelling, joined) = match word.split_once('=') {
        Some((spelling, value)) if word.starts_with("--") => (spelling, Some(value)),
        _ => (word, None),
    };
    let option = OPTIONS
        .iter()
        .find(|option| option.spellings.contains(&spelling))?;
    (option.takes_value || joined.is_none()).then_some((option, joined))
}

/// Finds the short option that a word starts with, and the value joined to it, with or without `=`.
pub(super) fn find_joined(word: &str) -> Option<(&'static Opt, Option<&str>)> {
    let (spelling, value) = word.split_at_checked(2)?;
    let option = OPTIONS
        .iter()
        .filter(|option| option.takes_value && spelling != "--")
        .find(|option| option.spellings.contains(&spelling))?;
    let value = value.strip_prefix('=').unwrap_or(value);
    (!value.is_empty()).then_some((option, Some(value)))
}

pub(super) fn long_spellings() -> impl Iterator<Item = &'static str> + Clone {
    OPTIONS
        .iter()
        .flat_map(|option| option.spellings.iter().copied())
        .filter(|spelling| spelling.starts_with("--"))
}
