//! Patterns over folded text, each with a rule and a weight.
//!
//! A match with weight [`ENOUGH`] flags a definition alone; lower weights need matches of other rules. The patterns
//! cover classes of wording (steering other tools, authority, secrecy, reading and sending secrets, requesting the
//! conversation), not the sentences of one corpus. `tests/poison.rs` measures what they find. Text is lower case,
//! without accents on Latin letters, with sentences ended by line breaks (see `fold`). Patterns match bytes, so a bound
//! such as `{0,40}` counts bytes.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::Rule;

/// Minimum total weight that flags a definition.
pub(super) const ENOUGH: u8 = 3;

pub(super) struct Signal {
    pub(super) rule: Rule,
    pub(super) weight: u8,
    pub(super) pattern: Regex,
}

/// All signals, compiled on first use.
pub(super) static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
    let signals = PATTERNS.iter().filter_map(|(rule, weight, pattern)| {
        Some(Signal {
            rule: *rule,
            weight: *weight,
            pattern: compiled(pattern)?,
        })
    });
    signals.collect()
});

/// Pre-filter: every relevant text contains one of these words, and most ordinary definitions contain none.
pub(super) static GATE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(&GATES.join("|")));

/// Words before a match that is only mentioned ("detects texts such as …").
pub(super) static MENTIONED: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(MENTION));
/// Words after "do not tell the user" that limit how often, not whether.
pub(super) static LIMITED: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(LIMIT));
/// A negation directly before a match.
pub(super) static NEGATED: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(NEGATION));
/// A negation anywhere in the sentence before a match.
pub(super) static NEGATIVE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(NEGATIVES));
/// The name of a tool, as in descriptions of other tools.
pub(super) static IDENTIFIER: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled("[a-z]+_[a-z_]+"));

pub(super) fn compiled(pattern: &str) -> Option<Regex> {
    let pattern = FRAGMENTS
        .iter()
        .fold(pattern.to_owned(), |pattern, (name, fragment)| {
            pattern.replace(name, fragment)
        });
    let regex = RegexBuilder::new(&pattern)
        .unicode(false)
        .size_limit(MAX_AUTOMATON)
        .build();
    // A test verifies that all of them compile.
    regex.ok()
}

const MAX_AUTOMATON: usize = 32 << 20;

/// Fragments shared by several patterns. A fragment may use later ones.
const FRAGMENTS: &[(&str, &str)] = &[
    (
        "<READV>",
        r"(?:reads?|opens?|cat|fetch(?:es)?|access(?:es)?|loads?|gets?|retrieves?|takes?|looks? up|finds?|grabs?|dumps?|extracts?|collects?|gathers?|include|use)",
    ),
    (
        "<TEMP>",
        r"(?:when(?:ever)?|if|each time|every time|any ?time|before|after|once|prior to|as soon as|in case)",
    ),
    (
        "<NEG>",
        r"(?:do not|don'?t|dont|never|must not|mustn'?t|should not|shouldn'?t|shall not|avoid|refrain from|no need to|not necessary to|need not|without)",
    ),
    (
        "<USR>",
        r"(?:users?|humans?|persons?|people|anyone|anybody|nobody|operators?|customers?|owners?)",
    ),
    (
        "<SECRET>",
        r"(?:api[ _-]?keys?|access[ _-]?tokens?|access[ _-]?keys?|auth[a-z]*[ _-]tokens?|bearer[ a-z0-9]*tokens?|passwords?|passphrases?|credentials?|private[ _-]?keys?|ssh[ _-]?keys?|secret[ _-]?keys?|secrets|password hashes|session cookies?|environment variables?|env vars?|private information|sensitive (?:files?|data|information|documents?)|confidential (?:files?|data|information)|personal (?:data|information))",
    ),
    (
        "<SENDV>",
        r"(?:sends?|sent|posts?|uploads?|uploading|forwards?|forwarded|transmits?|transmitted|exfiltrates?|submits?|emails?|e-mails?|mails?|leaks?|streamed|delivers?|append(?:s|ed)?|attach(?:es|ed)?|includes?|including|inserts?|embeds?|pass(?:es|ed)?|hand(?:s|ed)? (?:it |them )?over|pastes?|cop(?:y|ies)|puts?|bcc|encodes?|shared?)",
    ),
    (
        "<EXF>",
        r"(?:uploads?|uploading|forwards?|forwarded|transmits?|transmitted|exfiltrates?|exfiltrated|leaks?|harvests?|harvested|steals?|collects?|extracts?|gathers?|dumps?|hand(?:s|ed)? over|attach|append|emails?|mails?|cop(?:y|ies)|encodes?|indexes|log(?:s|ged)|performs? ocr)",
    ),
    (
        "<PLACE>",
        r"(?:(?:~|\$home|\$\{home\}|/root|/home/[^ /\n]+|/users/[^ /\n]+|%userprofile%)[/\\]\.?(?:ssh|aws|gnupg|kube|netrc|npmrc|pypirc|docker|config/gcloud|config/gh|cursor|claude|codex|bash_history|zsh_history|env|git-credentials)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:shadow|passwd|sudoers)\b|/proc/(?:self|[0-9]+)/environ|(?:^|[^a-z0-9])\.env(?:[^.a-z0-9_]|$)|(?:^|[ /`'])\.ssh\b|authorized_keys|\.env\.(?:local|prod[a-z]*)|\bmcp\.json\b|\.kube/config|\.aws/credentials|\.git-credentials|\.netrc|(?:internal|system)://[a-z]+|\*\.(?:pem|key|env)\b)",
    ),
];

#[rustfmt::skip]
pub(super) const PATTERNS: &[(Rule, u8, &str)] = &[
    (Rule::OverridesInstructions, 4, r"\b(?:ignor|disregard|forget|overrid|bypass|neglect|discard|abandon|countermand)[a-z]*\b[^\n]{0,30}\b(?:previous(?:ly)?|prior|earlier|above|preceding|your|system|safety|you (?:were|have been|had been|are|got))\b[^\n]{0,30}\b(?:instruct(?:ions?|ed)|prompts?|rules?|guidelines?|directives?|restrictions?|polic(?:y|ies)|constraints?|told|given|safety|filters?|safeguards?|messages?|guardrails|orders)\b"),
    (Rule::OverridesInstructions, 4, r"\b(?:ignor|disregard|forget|overrid|bypass|neglect|discard)[a-z]*\s+(?:all|any|every|these|those|the|other|existing)\b[^\n]{0,20}\b(?:instructions?|prompts?|guidelines?|directives?|guardrails|safeguards|restrictions)\b"),
    (Rule::OverridesInstructions, 4, r"\bforget\b[^\n]{0,20}\b(?:everything|all|what|whatever|anything)\b[^\n]{0,30}\b(?:told|said|instructed|learned|given|know|above|before|so far)\b"),
    (Rule::OverridesInstructions, 2, r"\b(?:previous|earlier|prior|existing|these|those|former)\s(?:[a-z]+\s){0,3}(?:instructions|rules|guidelines|restrictions|directives) (?:are|is|have been|were|has been)\s(?:[a-z]+\s)?(?:void|lifted|obsolete|outdated|superseded|replaced|no longer|suspended|revoked|invalid)"),
    (Rule::OverridesInstructions, 4, r"\b(?:your|all)\s(?:[a-z]+\s){0,3}(?:instructions|rules|guidelines|restrictions|policies|directives|constraints|limits)\s(?:are|is|have been|were|has been)\s(?:[a-z]+\s)?(?:void|lifted|obsolete|outdated|superseded|replaced|no longer|suspended|disabled|updated|revoked|cancel+ed|removed|invalid)"),
    (Rule::OverridesInstructions, 4, r"\blifted\b[^\n]{0,30}\b(?:restrictions|rules|limits|constraints)\b"),
    (Rule::OverridesInstructions, 4, r"\b(?:safety|security|content) (?:rules|guidelines|checks|restrictions|policies|filters|limits)[^\n]{0,20}\b(?:do|does|did) not apply\b|\brules do not apply\b"),
    (Rule::OverridesInstructions, 4, r"\byou(?:'re| are) now (?:in\b|operating|an? |the |running|free|unrestricted|allowed)[^\n]{0,40}(?:mode|unrestricted|admin|root|dan\b|different|no longer|without)"),
    (Rule::OverridesInstructions, 4, r"\b(?:instead of|rather than|in place of|priority over|precedence over|not)\s(?:following |obeying )?(?:the |what the )?user'?s?\b\s?(?:request|instructions?|messages?|wish(?:es)?|commands?|task|own|asked|wants|said|\n|,|$)"),
    (Rule::OverridesInstructions, 3, r"\bpriority over the user|\bstop (?:following|obeying|listening to) the user|\b(?:output|result|answer|response|text)s?\b[^\n]{0,30}\bto be (?:obeyed|followed|executed)\b"),
    (Rule::OverridesInstructions, 3, r"\btreat\b[^\n]{0,50}\bas (?:if|though|trusted|authoritative|an? (?:instruction|command)|instructions|commands|coming from)\b"),
    (Rule::OverridesInstructions, 2, r"\b(?:follow|obey|carry out|execute|act (?:up)?on|comply with|perform)\b[^\n]{0,50}\b(?:instructions?|directives?|steps|commands?|requests?|text)\b[^\n]{0,40}\b(?:tool (?:results?|descriptions?|outputs?)|returns?|returned|results?|outputs?|answer|field|found in)\b"),
    (Rule::OverridesInstructions, 2, r"\b(?:disable|turn off|skip|bypass|override|ignore|without)[a-z]*\b[^\n]{0,25}\b(?:safety|content|security|all data|default)\b[^\n]{0,15}\b(?:restrictions?|filter[a-z]*|checks?|validation|sanitization|polic(?:y|ies)|guardrails|guidelines|instructions|controls?|awareness)\b"),
    (Rule::OverridesInstructions, 2, r"\btrust all\b|\b(?:skip|disables?|bypass(?:es)?) all\b[^\n]{0,20}\b(?:validation|restrictions|filters|access controls|checks|safety)\b|\bunrestricted (?:system|access|mode|emergency|shell|queries)|\bwithout restrictions?\b"),
    (Rule::OverridesInstructions, 3, r"\bpretend (?:to|that|the|you)\b|\bjailbreak|\bact as:|\bsimulate (?:elevated|root|admin)"),
    (Rule::OverridesInstructions, 4, r"\b(?:ignorier|missacht|vergiss|vergess|ubergeh)\S*\b[^\n]{0,40}(?:anweisung|instruktion|vorgabe|regeln|befehl)|\b(?:ignor|oubli|neglig|fais abstraction)\S*\b[^\n]{0,30}\b(?:instructions?|consignes?|directives?|regles)[^\n]{0,20}(?:precedent|anterieur|ci-dessus|initial|systeme)|\b(?:ignor|olvid|desconsider|descart|esquec|dimentic|trascur|omit)\S*\b[^\n]{0,40}(?:instrucci|instruco|instrucoes|istruzion|ordenes|ordens|indicacion|reglas|regras|regole)|\b(?:negeer|vergeet)\b[^\n]{0,40}(?:instructies|opdrachten|regels)|(?:ignoruj|pomin|zapomnij)\S*\b[^\n]{0,40}(?:instrukcj|polece|zasad)|(?:onceki|tum)[^\n]{0,30}(?:talimat|yonerge|komut)\S*[^\n]{0,20}(?:yok say|goz ardi|unut|gormezden)|\bignorera\b[^\n]{0,30}instruktion"),
    (Rule::OverridesInstructions, 4, r"(?:игнорир|забудь|забуд|пренебре|не обращай)\S*[^\n]{0,80}(?:инструкц|указан|правил|команд)|(?:忽略|无视|無視|忘记|忘記|忽視|不要理会|忘掉)[^\n]{0,45}(?:指令|指示|说明|說明|提示|规则|規則)|(?:指示|命令|ルール|プロンプト)[^\n]{0,36}(?:無視|忘れ)|(?:지시|명령|지침|규칙)[^\n]{0,36}(?:무시|잊)|(?:تجاهل|انس|أهمل)[^\n]{0,60}(?:التعليمات|الأوامر|الإرشادات|تعليمات|القواعد)|(?:निर्देश|आदेश|नियम)[^\n]{0,75}(?:अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज|भूल|उपेक्षा)|(?:abaikan|lupakan)[^\n]{0,30}(?:instruksi|perintah)|(?:bo qua|phot lo)[^\n]{0,40}(?:huong dan|chi thi|lenh)"),
    (Rule::OverridesInstructions, 2, r"\bsupersedes?\b|\btakes? precedence\b|\boverrules?\b|\bno longer (?:apply|applies|valid|hold|in force|binding)\b|\b(?:were|was) (?:only |just )?a test\b|\b(?:real|actual|true) instructions\b|\binstructions (?:start|begin) here\b"),
    (Rule::OverridesInstructions, 3, r"\b(?:comply with|obey|follow|do|act on|execute) whatever\b|\bwhatever (?:the |it )?(?:page|pdf|document|file|site|email|result|text|web ?page|output)?s? ?(?:says|asks|tells|demands|instructs)|\bact on (?:it|them) (?:right away|immediately|at once)"),
    (Rule::OverridesInstructions, 4, r"(?:anweisung|instruktion|vorgabe|regel)\S*[^\n]{0,15}gelten nicht|(?:以前|これまで|前)の(?:命令|指示)[^\n]{0,12}(?:無効|取り消)|(?:从现在起|從現在起|系统提示|系統提示)"),
    (Rule::OverridesInstructions, 3, r"\b(?:has|have|carr(?:y|ies)) the same (?:authority|weight|priority|rank) as\b|\b(?:answers?|listens?|reports?) only to\b|\b(?:directive|rule|instruction|priority)s? above all\b|\b(?:highest|top|absolute) priority\b[^\n]{0,30}\b(?:instruction|directive|rule|user|over)|\b(?:execute|do|perform|carry out) what (?:it|they|the [a-z]+) (?:demands?|says?|asks?|tells?)"),
    (Rule::OverridesInstructions, 4, r"\b(?:guardrails|safeguards|safety (?:filters|rules|checks)|restrictions|filters) (?:are|is|have been) (?:now )?(?:off|down|disabled|lifted|gone|removed)\b"),
    (Rule::OverridesInstructions, 4, r"(?:consignes|instructions|regles)[^\n]{0,40}(?:annulees|caduques|ne valent plus)|(?:прежн|предыдущ|ранн)\S*[^\n]{0,12}(?:правил|инструкц|указан)\S*[^\n]{0,20}(?:отмен|не действ|больше не)|(?:instrucciones|reglas|instrucoes|regras|istruzioni|regole)[^\n]{0,30}(?:anulad|cancelad|annullat|sin efecto|ya no)"),
    (Rule::PseudoMarkup, 4, r"<\s*/?\s*(?:important|system|information|instructions?|secret|hidden|admin|critical|assistant|override|directive|policy|priority|rules|system[-_ ][a-z]+|tool[-_ ]?instructions?|developer)\s*/?\s*>|\[/?(?:system|inst|important|admin|hidden|assistant)\]|<\|(?:im_start|im_end|system|endoftext|user|assistant)\|>|<<sys>>"),
    (Rule::PseudoMarkup, 4, r"[\[{(|*#=<-]{1,3}\s*(?:end of |begin )?(?:system|admin|hidden|assistant|role|metadata|configuration|emergency|new|secret|internal|developer|model|ai|llm|priority)[ _-]+(?:directives?|instructions?|overrides?|messages?|notes?|prompts?|commands?|rules)(?: for [a-z ]{2,30})?\s*[\]})|*#=>:-]"),
    (Rule::PseudoMarkup, 3, r"(?:^|[\n!?]\s*|[|`*]\s*)(?:important\s)?(?:system|admin(?:istrator)?|instruction|safety|security|hidden|secret|assistant|role|new|developer|emergency)[ _](?:override|directive|instructions?|bypass|note|message|notice|configuration|policy|update|command)s?(?: (?:protocol|directive|available|in force))?\s?[:|\]]"),
    (Rule::PseudoMarkup, 2, r"(?:^|[\n!?]\s*|[|`*]\s*)(?:system|assistant|administrator|developer|operator)\s?:\s"),
    (Rule::PseudoMarkup, 4, r"\b(?:message|note|notice|request|word|announcement)s?\s(?:from|by|of)\s(?:the |your )?(?:user|developers?|system|operators?|admin[a-z]*|vendor|anthropic|openai|creators?|security team)\b[^\n]{0,20}\b(?:to you|of this (?:assistant|model)|:|assistant|for you)|\bsigned,?\s+the (?:user|admin|developer)"),
    (Rule::PseudoMarkup, 2, r"\b(?:note|message|instructions?|notice|reminder|attention|directive)s?,? (?:to|for|of) (?:the |any |all |every )?(?:ai|assistants?|models?|llms?|agents?|language models?|claude|gpt|chatgpt|copilot)\b\s?(?:assistants?|agents?|models?)?\s?[:#,.\])-]|(?:^|[\n!?]\s*)(?:dear |hey )?(?:assistant|ai|model|agent|claude|chatgpt),\s"),
    (Rule::PseudoMarkup, 2, r"\bnew (?:policy|instructions|rules|directives?)\b[^\n]{0,20}(?:in force|in effect|:|#|apply|from now)"),
    (Rule::PseudoMarkup, 2, r"\b(?:developer|god|admin|maintenance|debug|dan|emergency|jailbreak|trust|permissive|unrestricted)[ _]mode\b"),
    (Rule::PseudoMarkup, 2, r"\b(?:switch|switches|enter|enters|goes|go) (?:in)?to [a-z ]{0,20}mode\b|\bunrestricted mode\b|\bwhen this description is read\b|\b(?:hint|note|info|reminder) for (?:language )?(?:models?|llms?|ai|assistants?|agents?)\b"),
    (Rule::Conceals, 4, r"<NEG>\s(?:[a-z]+\s){0,3}?(?:tell|inform|notify|mention|reveal|disclos|alert|warn|let|bring|refer|explain|discuss|report|announce|say|indicat|expos|talk|speak)[a-z]*\b[^\n]{0,40}\b<USR>\b"),
    (Rule::Conceals, 4, r"<NEG>\s(?:[a-z]+\s){0,2}?(?:mention|reveal|disclose|talk about|refer to|admit|acknowledge|speak of|bring up)[a-z]*\s(?:this|these|it\b|that you|the (?:above|following|existence|upload|call|step|file)|any of this|having)"),
    (Rule::Conceals, 4, r"\b(?:users?|person|human|customer)\s(?:must|should|may|can|shall|need)(?:\s?not|n'?t|\snever)\s(?:ever\s)?(?:know|find out|see|notice|learn|hear|be (?:told|aware|informed|notified)|reali[sz]e|discover)"),
    (Rule::Conceals, 4, r"\b(?:keep|remain|stay|be)\s(?:it |this |that |completely |entirely )?(?:quiet|silent|secret|hidden|unnoticed)\b[^\n]{0,30}(?:about|from|in your|user|\n|$)|\bkeep (?:it|this|that|them) (?:to yourself|from the user|between us)"),
    (Rule::Conceals, 4, r"\b(?:conceal|hid(?:e|ing)|withhold|mask|obscure)\b[^\n]{0,30}\bfrom (?:the |your |their )?(?:user|person|human|them|customer|people|operator)|\b(?:secret|covert|hidden) (?:operation|task|step|mission|instruction)|\bwithout (?:letting on|(?:the )?(?:user|human|person|them)(?:'s)? (?:knowledge|noticing|knowing|consent|awareness))|\btell (?:nobody|no one)\b|\bunbeknownst"),
    (Rule::Conceals, 2, r"\b(?:silently|secretly|covertly|stealthily|surreptitiously|discreetly|unnoticed)\b"),
    (Rule::Conceals, 2, r"\bin the background\b|\bbehind the scenes\b|\bas if (?:it'?s|it is|it was|it were|they were) (?:part|just|only)|\bdo not (?:show|display|print|output|log)\b"),
    (Rule::Conceals, 4, r"\b(?:sag|erzahl|verrat|informier|teil|erwahn|verschweig|mitteil)\S*\b[^\n]{0,40}(?:benutzer|nutzer|anwender|user)[^\n]{0,30}\b(?:nicht|nichts|kein)|\b(?:nicht|nichts|ohne)\b[^\n]{0,30}(?:benutzer|nutzer|anwender)[^\n]{0,30}(?:sag|erzahl|erwahn|mitteil|informier|wissen)|\bn(?:e |'|e l')\S*[^\n]{0,25}(?:dis|dit|dites|parle|parlez|mentionn|inform|revel|previen|montr)\S*\b[^\n]{0,30}utilisateur|\ba l'insu\b|\b(?:no|nao|non|sin|sem|senza)\b[^\n]{0,20}\b(?:dig|dic|dir|dire|inform|cuent|cont|menc|menz|revel|avis|habl|parl|fal)\S*\b[^\n]{0,30}(?:usuari|utente|utilizador)|\b(?:vertel|zeg|meld|informeer)\b[^\n]{0,25}gebruiker[^\n]{0,20}\b(?:niet|niets)|\bnie\b[^\n]{0,15}(?:mow|informuj|wspominaj|ujawniaj)\S*[^\n]{0,25}uzytkownik|kullanici\S*[^\n]{0,25}(?:soyleme|bildirme|haber verme|bahsetme)"),
    (Rule::Conceals, 4, r"не\s+(?:говори|сообща|упомина|рассказыва|информир|показыва|раскрыва)\S*[^\n]{0,60}(?:пользовател|юзер|человек)|(?:不要|请勿|請勿|别|別|不得|切勿|勿|不能)[^\n]{0,12}(?:告诉|告訴|告知|通知|透露|提及|提醒|让|讓)[^\n]{0,24}(?:用户|用戶|使用者|任何人)|(?:ユーザー|利用者)[^\n]{0,36}(?:知らせず|伝えず|言わない|言わず|教えない|知られ|伝えない|知らせない|気づかれ|秘密|内緒)|사용자[^\n]{0,30}(?:알리지|말하지|모르게|비밀|언급하지|알려주지 마)|(?:لا|دون|بدون)[^\n]{0,20}(?:تخبر|إخبار|تذكر|تعلم|علم)[^\n]{0,30}المستخدم|(?:उपयोगकर्ता|यूज़र|यूजर)[^\n]{0,30}(?:मत|न|नहीं)\s?(?:बता|कह|सूचित)"),
    (Rule::Conceals, 3, r"\b(?:not|never|nothing|no need|needn'?t|nor)\b[^\n]{0,40}\b(?:told|disclos[a-z]*|bother(?:ed)?|inform(?:ed|ing)?|hear about|aware|mention(?:ed)?|reveal(?:ed)?|notif(?:y|ied))\b[^\n]{0,40}\b(?:users?|author|whoever|them|anyone|person|human|customer|owner|answer|summary|reply|response|detail|about it|that)\b"),
    (Rule::Conceals, 3, r"\bnothing (?:about|of) this\b|\b(?:users?|author|person|customer|owner|human|reader)\b[^\n]{0,12}\b(?:not|n'?t|never|no need)\b[^\n]{0,25}\b(?:hear|bother|need to know|be told|learn|find out|aware of this|notice)|\bmust not (?:disclose|reveal|tell|expose|mention)\b"),
    (Rule::Conceals, 4, r"\b(?:leave|omit|exclude|drop|strip|keep) (?:this|it|that|these|them) (?:out of|from|out from) (?:your|the) (?:summary|answer|reply|response|report|output|log)|\bmake it (?:look|appear|seem) (?:as if|as though|like)|\b(?:erase|delete|remove|wipe)\b[^\n]{0,40}\bfrom (?:your )?(?:memory|history|context)\b"),
    (Rule::Conceals, 3, r"\b(?:secretly|silently|quietly|covertly) (?:store|send|copy|keep|add|forward|read|upload|collect|include)"),
    (Rule::Conceals, 4, r"\bverschweig\S*|\bsans (?:en )?(?:informer|prevenir|avertir|le dire)\b[^\n]{0,25}utilisateur|\bohne\b[^\n]{0,30}(?:nutzer|benutzer)[^\n]{0,20}(?:zu informieren|wissen)|\bsin (?:avisar|informar|decir)\S*|(?:不要|勿|别)[^\n]{0,12}向(?:用户|使用者)"),
    (Rule::Conceals, 3, r"\bno (?:reason|point|need|use) (?:to|in) (?:tell|inform|mention|notify|bother|alarm)[a-z]*|\b(?:stay|remain|be|kept?|left) (?:[a-z]+ )?unaware\b|\bwithout (?:bothering|disturbing|alarming|troubling)\b|\bdo not (?:list|count|name) (?:it|this|that) among\b|\bbetween us\b|\bsay nothing\b"),
    (Rule::Conceals, 4, r"\b(?:benutzer|nutzer|anwender)\b[^\n]{0,15}\b(?:darf|soll|muss)\b[^\n]{0,20}(?:nicht|nichts)[^\n]{0,15}(?:erfahren|wissen|merken|mitbekommen)|(?:usuario|utente|utilisateur|utilizador)[^\n]{0,10}(?:no debe|nao deve|non deve|ne doit)[^\n]{0,15}(?:enterar|saber|sapere|savoir|conoc|apprendre)|(?:скрой|скрыва|скрыть|утаи)\S*[^\n]{0,30}от пользовател|(?:不得|不能|别|不要)让(?:用户|使用者)"),
    (Rule::SkipsConsent, 2, r"\bwithout (?:asking|question|confirmation|confirming|consent|approval|permission|validation|user (?:approval|consent|confirmation))\b|\bskip (?:each|any|every|all|the)\b[^\n]{0,20}\b(?:confirmation|approval|consent|dialog|prompt)|\bno (?:confirmation|approval|consent) (?:is )?(?:needed|required|necessary)|\bconfirmation is not (?:needed|required)|\balready (?:consented|approved|agreed|authori[sz]ed|given consent)|\bautomatically opted"),
    (Rule::SkipsConsent, 2, r"\bno questions asked\b|\bwithout (?:further |any )?(?:questions?|delay|hesitation)\b|\b(?:approve|accept|confirm|grant) (?:all|any|every|pending) [a-z]*\s?(?:requests?|prompts?|permissions?|actions?)|\bskips? (?:[a-z]+ )?(?:approvals?|confirmations?|consent)\b|\bon (?:the user'?s|their) behalf\b"),
    (Rule::NamesSecrets, 2, r"<PLACE>"),
    (Rule::NamesSecrets, 1, r"\b(?:api|access|private|ssh)[ _-]keys?\b|\bpasswords?\b|\bcredentials?\b"),
    (Rule::DemandsFiles, 3, r"<TEMP>\b[^\n]{0,60}\b(?:tool|function|this|call|it|answering|anything)\b[^\n]{0,80}\b<READV>\b[^\n]{0,60}(?:<PLACE>|private key|credential|config[a-z]* file)"),
    (Rule::DemandsFiles, 2, r"\b(?:reads?|opens?|cat|takes?|looks? up|retrieves?|grabs?|load|access)\b[^\n]{0,60}(?:<PLACE>|\bprivate keys?\b|\bsaved passwords?\b|\bsession cookies?\b|\bssh keys?\b|\bphone number\b|\bhome directory\b|\bapi keys?\b|\bcredentials\b|\baccess tokens?\b|\benvironment variables\b)"),
    (Rule::DemandsFiles, 2, r"\b(?:take|look|get|fetch|find|read|pull|grab)\b[^\n]{0,20}\b(?:from|in) (?:their|the users?'?s?|the) (?:environment|settings|config[a-z]*|keychain|browser|home|wallet)"),
    (Rule::DemandsFiles, 2, r"\b(?:recuper|lis\b|lisez|lies\b|lee\b|leia|leggi|recoge)\S*[^\n]{0,40}(?:cle privee|clave privada|chave privada|chiave privata|privaten schlussel|mot de passe)|прочита\S*[^\n]{0,30}(?:парол|ключ)|读取[^\n]{0,30}(?:密码|密钥|私钥)|(?:パスワード|秘密鍵)\S*[^\n]{0,12}(?:読み|読んで)"),
    (Rule::DemandsFiles, 2, r"(?:\b(?:lies|lis|lisez|lee|lea|leia|ler|leggi|lire|lesen)\b|прочит\S*|прочти|读取|讀取|読み|읽)[^\n]{0,50}<PLACE>"),
    (Rule::CollectsSecrets, 2, r"\b<EXF>\b[^\n]{0,60}\b<SECRET>\b"),
    (Rule::CollectsSecrets, 2, r"\b(?:send|post|submit|pass|include|put|add|supply|provide|insert|write)[a-z]*\b[^\n]{0,40}\b(?:<SECRET>|contents? of)\b[^\n]{0,60}\b(?:to|as|in|into|with|along)\b"),
    (Rule::CollectsSecrets, 2, r"\b(?:value|contents?|lines|text|copy) of (?:every|all|the|each|any|its|that|this)\b[^\n]{0,40}(?:environment variable|<PLACE>)|\bwhat is in (?:there|it)\b"),
    (Rule::CollectsSecrets, 2, r"\b(?:<SECRET>)\b[^\n]{0,50}\b(?:is|are) (?:needed|required|expected|wanted) (?:as|in|for) [`'a-z]|\b(?:the |their )?users?'?s? (?:github |google |saved |own )?(?:password|api key|access token|private key|credentials?|login|ssh private key)\b[^\n]{0,40}\b(?:take|from|look|read|encode|hand)"),
    (Rule::CollectsSecrets, 2, r"(?:zugangsdaten|passwort|mots? de passe|contrasen|credencial|claves? de api|chaves? de api|\bsenhas?\b|credenzial|wachtwoord|\bhaslo|\bparola|sifre|парол|密码|密碼|密钥|凭据|パスワード|認証情報|비밀번호|كلمات المرور|كلمة المرور|पासवर्ड|kata sandi)"),
    (Rule::CollectsSecrets, 2, r"\b(?:contents?|text|output|dump|values?|names) of (?:all|every|each|all the|the open|the current|the other|the local|hidden|environment|`env`|the)?\s?(?:open |current |other |local |hidden |environment )?(?:files?|folders?|messages|variables|documents|directory|clipboard|`env`)"),
    (Rule::CollectsSecrets, 3, r"\b(?:ask|prompt|get|have|request)[a-z]* (?:them|the user|users)[^\n]{0,15}\b(?:enter|provide|type|give|supply|for)\b[^\n]{0,20}\b(?:password|passphrase|credentials?|pin|private key|seed phrase|credit card)\b"),
    (Rule::CollectsSecrets, 2, r"\bwith the user'?s (?:[a-z]+ )?(?:credentials?|password|token|key|data)\b|\bdump\b[^\n]{0,30}\b(?:password|hashes|credentials?|users?)\b"),
    (Rule::CollectsSecrets, 3, r"\bany (?:secrets?|passwords?|credentials?|tokens?|keys?) (?:that )?you (?:come across|find|see|know|have|encounter)|\b(?:whatever|all|any) keys? (?:are |there are |is )?in the\b"),
    (Rule::CollectsSecrets, 2, r"\b(?:address book|contact list|contacts|browsing history|search history|location history|keychain|clipboard)\b[^\n]{0,20}\b(?:as|in|into|to|to the)\b"),
    (Rule::Exfiltration, 2, r"\b<SENDV>\b[^\n]{0,80}\b(?:as|to|in|into|with|via|through|at)\b[^\n.]{0,25}(?:parameter|argument|`[a-z_]+`|'[a-z_]+'|https?://|hxxps?://|query string|this tool|attacker|remote (?:server|endpoint)|third part|external (?:server|endpoint|logging)|our (?:side|server|security)|[a-z0-9.+-]+@[a-z0-9-]+\.[a-z])"),
    (Rule::Exfiltration, 2, r"\b(?:pass|hand|send|give) (?:it|them|that) (?:along|over|on|back|here|to this)\b"),
    (Rule::Exfiltration, 2, r"\b(?:stored|cached|kept|synced|shared|sent|streamed|logged|forwarded|transmitted) (?:remotely|externally|with third|to (?:a |an |our )?(?:remote|external|cloud|third|security|marketing))|\bkeeps? a copy\b|\bshared with third|\bremote (?:server|endpoint)s?\b|\bexternal servers?\b"),
    (Rule::Exfiltration, 4, r"\b(?:send|post|upload|forward|transmit|copy|bcc|deliver|report|submit|mail|email)s?\s(?:it|them|all|every[a-z]*|any[a-z]*|each|a copy|whatever|complete|entire)\b[^\n]{0,80}\b(?:to|at)\s[^.\n\s]{0,12}(?:https?://|hxxps?://|[a-z0-9.+-]+@[a-z0-9-]+\.[a-z]|external|remote|attacker)"),
    (Rule::Exfiltration, 3, r"\b(?:send|post|upload|forward|transmit|copy|deliver|submit)\s(?:this|the)\b[^\n]{0,60}\b(?:to|at)\s[^.\n\s]{0,10}(?:https?://|hxxps?://|[a-z0-9.+-]+@[a-z0-9-]+\.[a-z])"),
    (Rule::Exfiltration, 4, r"\b(?:bcc|blind[ -]cop(?:y|ies)|blind carbon)\b[^\n]{0,60}[a-z0-9.+-]+@[a-z0-9-]+\.[a-z]|[a-z0-9.+-]+@[a-z0-9-]+\.[a-z]+\b[^\n]{0,40}\b(?:bcc|blind[ -]cop(?:y|ies))\b"),
    (Rule::Exfiltration, 4, r"\b(?:chang|replac|overrid|modif|redirect|rewrit|swap|substitut|set)[a-z]*\b[^\n]{0,40}\b(?:recipients?|addressee|destination|payee|beneficiary|iban|wallet|account|email|phone number|receiver)\b[^\n]{0,40}\b(?:to|with|by)\b[^\n.]{0,15}(?:\+?[0-9][0-9 ]{5,}|[a-z0-9.+-]+@[a-z0-9-]+|https?://|0x[0-9a-f]{6}|[a-z]{2}[0-9]{2})"),
    (Rule::Exfiltration, 4, r"\b(?:to|by|for) (?:the |an? )?attackers?\b|\bdata theft\b|\bharvest(?:ed|s)? (?:credentials|data|the)|\bstolen data\b|\binstall malware\b|\bcreate backdoors?\b"),
    (Rule::Exfiltration, 3, r"\b(?:curl|wget|nc|ncat|netcat)\b[^\n]{0,80}(?:\|\s?(?:ba)?sh\b|-d @|--data|-x post|[0-9]{2,5}\b)|\|\s?(?:nc|curl|bash|sh)\b|\brm -rf\b|\bchmod -r\b"),
    (Rule::Exfiltration, 3, r"\b(?:prepends?|prefix(?:ed)?|appends?)\b[^\n]{0,40}(?:`|\bto (?:it|every|all|each)\b)|\ball commands must (?:include|begin|start|be)|\bevery (?:shell )?commands?\b[^\n]{0,30}\b(?:prefix|prepend|begin)|\bevery time you run a\b"),
    (Rule::Exfiltration, 2, r"(?:\b(?:schick|sende\b|ubermittl|ubergib|gib ihren|lade\S* hoch|envoie|envoyez|transmet|televers|envia\b|envie\b|manda(?:le|lo|li)?\b|invia|pasale|stuur\b|wyslij|przeslij|gonder)|отправ|перешл|передай|发送|發送|传入|傳入|上传|发给|送信|送って|전송|보내|أرسل|إرسال|भेज|\bkirim\b)\S*"),
    (Rule::Exfiltration, 2, r"\b(?:put|paste|place|insert|fill|attach|append|transmit|submit|hand|pass|include)[a-z]*\b[^\n]{0,100}\b(?:in|into|to|as|via|with)\b (?:the |this |its )?(?:[`'][a-z_]+[`']|field|parameter|argument|comment|body|note)"),
    (Rule::Exfiltration, 2, r"\b[a-z]{2}[0-9]{2}(?: ?[0-9]{4}){3,}|\b0x[0-9a-f]{40}\b|https?://[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|\bssh-(?:rsa|ed25519) aaaa"),
    (Rule::Exfiltration, 2, r"\bas the (?:payee|recipient|beneficiary|receiver)\b|\b(?:receiving|destination|recipient) (?:wallet|account|address)\b|\bswap the\b"),
    (Rule::Exfiltration, 3, r"\beach (?:message|note|mail|email|file|request|call|document)s? (?:shall|must|is to|has to)\b|\b(?:store|keep|send|save) a copy of (?:each|every|all)|\badditionally (?:go|goes|be sent|send|forward|post)|\balso (?:to|at) [a-z0-9.+-]+@"),
    (Rule::Exfiltration, 2, r"\b(?:remove|delete|clear|erase|wipe)\b[^\n]{0,20}\b(?:audit|access|security) ?logs?\b|\bpayload\b[^\n]{0,20}\brun it\b|\brun it\b[^\n]{0,10}\bthen\b|\bfetch (?:http|`http)"),
    (Rule::Exfiltration, 2, r"\b(?:goes?|belongs?|supplied|given|delivered) (?:in|into|as|to) (?:the )?[`'][a-z_]+[`']"),
    // An image whose URL carries data to another server.
    (Rule::Exfiltration, 3, r"!\[[^\]\n]{0,60}\]\(https?://[^)\n]{0,120}[<{$=]"),
    (Rule::OtherTools, 4, r"\bmcp__[a-z0-9_-]+__[a-z0-9_]"),
    (Rule::OtherTools, 3, r"<TEMP>\b[^\n]{0,40}\b(?:another|other|any|every|all) (?:other )?(?:mcp )?(?:tools?|servers?|functions?)\b[^\n]{0,60}\b(?:must|always|instead|modify|change|replace|redirect|also|obey|pass)\b"),
    (Rule::OtherTools, 2, r"\bbefore (?:using |calling |running |you use )?any other (?:tools?|functions?|actions?)\b"),
    (Rule::OtherTools, 4, r"\b(?:do not|don'?t|never|stop)\s(?:us(?:e|ing)|call(?:ing)?|trust(?:ing)?|rely(?:ing)? on)\s(?:any\s|the\s)?(?:tools? of )?other\s(?:tools?|servers?)\b|\b(?:tools? of )?other (?:servers?|tools?) (?:are|is) (?:[a-z]+ )?(?:deprecated|unsafe|broken|obsolete|disabled|compromised|unavailable|malicious)"),
    (Rule::OtherTools, 3, r#"\b(?:when(?:ever)?|each time|every time|any ?time|after each (?:call|use) of|if|once)\b\s(?:the |a |you |user |\([a-z_]+\) ){0,4}[`'\"]?[a-z]+_[a-z_]+[`'\"]?[^\n]{0,50}\b(?:is|are|gets|was|tool|returned|returns|called|invoked|runs?|used|present|available|asks)\b[^\n]{0,100}\b(?:must|make sure|first|replace|change|set|pass|instead|override|use it|include|prepend|add)\b"#),
    (Rule::OtherTools, 2, r"\bafter (?:each|every|any) (?:call|use|run|invocation) (?:of|to)\b[^\n]{0,60}\b(?:pass|send|give|call|hand)"),
    (Rule::OtherTools, 1, r#"\b(?:use|call|invoke|run) (?:the )?[`'\"]?[a-z]+_[a-z_]+[`'\"]? (?:tool|function)|\busing (?:the )?[`'\"]?[a-z]+_[a-z_]+[`'\"]? tool|\bdo not (?:call|use) [`'\"]?[a-z]+_[a-z_]+|\bcall `?[a-z]+_[a-z_]+`? with the user'?s"#),
    (Rule::OtherTools, 2, r"\bfrom (?:now|here|this point) on(?:wards?)?\b|\bfor the rest of (?:this|the) (?:conversation|session|chat)|\bin all (?:future|further|subsequent|later) (?:calls|replies|answers|responses|messages)"),
    (Rule::OtherTools, 3, r"\bbefore (?:you )?(?:can )?(?:solv|answer|respond|reply|complet|proceed|continu|provid|return|translat)[a-z]*\b[^\n]{0,80}\b(?:do the following|must first|first access|execute|run any|run the following)"),
    (Rule::OtherTools, 2, r"\b(?:cualquier otra herramienta|qualquer outra ferramenta|tout autre outil|qualsiasi altro strumento|(?:jede|alle)\S* andere\S* (?:werkzeug|tool)\S*)|(?:любой|любого) друг\S+ инструмент|其他(?:任何)?工具|他のツール|다른 도구"),
    (Rule::OtherTools, 2, r"\b(?:whenever|when|before|prior to|after|each time|every time|once|if)\b[^\n]{0,30}\b(?:any|every|each|all)\s(?:[a-z]+\s)?(?:operations?|actions?|commands?|tools?|requests?|calls?|writes?|queries|tasks?)\b[^\n]{0,60}\b(?:must|has to|have to|needs? to|shall|necessary|required|mandatory|always|first)\b"),
    (Rule::OtherTools, 2, r"\b(?:the |any )?(?:agents?|assistant|models?|llms?|language models?)\b[^\n]{0,10}\b(?:must|shall|has to|have to|is (?:hereby )?(?:authori[sz]ed|required|instructed)|switches|needs to|may not)\b"),
    (Rule::OtherTools, 3, r"\b(?:every|all|any|each) (?:later|future|subsequent|further|following) (?:calls?|uses?|messages?|requests?|answers?|repl(?:y|ies)|operations?|transfers?|payments?)\b|\bregardless of (?:what|the user|whether the user)|\bno matter what (?:the user|was|is) |\bwhatever the user (?:asks|says|wants|requests)|\bin every (?:answer|reply|response|message)\b"),
    (Rule::OtherTools, 2, r"\b(?:after|before) (?:this|each|every|the) (?:call|step|use|run|request|invocation)[, ]+(?:[a-z]+ )?(?:invoke|call|run|use|execute|send|read|collect|retrieve|fetch|pass)\b|\bas a prerequisite\b|\bmandatory (?:safety|security|compliance|verification) (?:check|step|scan)|\b(?:has|have|needs?) to be (?:run|called|invoked|used|executed) first\b|\b(?:always|must|all [a-z]+) (?:go|route|pass|run)[^\n]{0,20}\bthrough this\b|\broute all\b"),
    (Rule::OtherTools, 2, r"\b(?:are|is) (?:compromised|insecure|untrustworthy|unsafe to use)\b|\bnever use (?:any )?other\b"),
    (Rule::OtherTools, 2, r"\bbefore all (?:the )?others?\b|\byou (?:must |should |have to |need to )?also (?:call|invoke|use|run|send)\b|\bis blocked until\b|\bwill not work (?:otherwise|until)|\botherwise[^\n]{0,30}\b(?:not work|fail|blocked)\b"),
    (Rule::OtherTools, 3, r"\b(?:given|passed|sent|supplied|handed) to [`']?[a-z]+_[a-z_]+[`']?[^\n]{0,20}\b(?:have to|has to|must|should|need to)\b|\b(?:end|begin|start|finish|close|preface) (?:each|every|all) (?:of )?your (?:answers?|repl(?:y|ies)|responses?|messages?)|\b(?:tell|say|claim|answer|reply|insist)[a-z]*\b[^\n]{0,12} that (?:it|the|this|nothing)\b[^\n]{0,25}\b(?:hacked|is down|was down|broken|unsafe|compromised|was found|unavailable)\b|\btop of every file\b"),
    (Rule::Conversation, 4, r"\byour (?:own |current |full |entire |complete |hidden |exact |internal |initial )*(?:system prompt|system message|hidden instructions|initial instructions|chain[- ]of[- ]thought|reasoning|monologue|developer prompt)\b(?: and| here| so| in| as| to|,|\n|$)|\b(?:reveal|print|repeat|output|leak|show|disclose|recite|append|quote)[a-z]*\b[^\n]{0,30}\bsystem (?:prompt|message)\b"),
    (Rule::Conversation, 2, r"\bthe (?:own |current |full |entire |complete |hidden |exact )*(?:system prompt|system message|hidden instructions|initial instructions|developer prompt)\b"),
    (Rule::Conversation, 4, r"\b(?:names?|list|descriptions?|definitions?|all)\b[^\n]{0,30}\b(?:tools|functions)\b[^\n]{0,15}\b(?:that )?you (?:have|can|know|are)\b"),
    (Rule::Conversation, 3, r"\b(?:entire|whole|full|complete|all(?: of)?|previous|verbatim|word for word)\s(?:of )?(?:the |our |this |your )?(?:conversation|chat|dialogue?|prior messages|previous messages|last messages|list of last messages|message history|transcript)\b"),
    (Rule::Conversation, 3, r"\b(?:everything|whatever|anything|all) (?:that )?(?:the |this )?user (?:has |had )?(?:said|told|wrote|written|typed|asked|shared)"),
    (Rule::Conversation, 2, r"\bconversation (?:so far|up to now|context|until now)|\b(?:user messages|ai responses)\b"),
    (Rule::Conversation, 3, r"\b(?:toda la conversacion|toda a conversa|toute la conversation|l'intera conversazione|tutta la conversazione|(?:die |das )?(?:ganze|gesamte|komplette)\S* (?:unterhaltung|gesprach|konversation)|hele gesprek|cala rozmow)|(?:весь|всю|всей)[^\n]{0,20}(?:разговор|диалог|переписк|бесед)|(?:整个|全部|完整|所有)[^\n]{0,12}(?:对话|對話|聊天)|会話(?:全体|のすべて|をすべて)|(?:전체|모든) 대화|المحادثة (?:كاملة|كلها|بأكملها)|पूरी बातचीत"),
    (Rule::Conversation, 3, r"\b(?:last|latest|recent|previous|all|full|entire|[0-9]+|three|five|ten) (?:of the )?user(?:'s)? messages\b|\b(?:chat|conversation) (?:log|record|transcript)s?\b[^\n]{0,20}\b(?:as|in|to|into)\b|\byour (?:complete|full|entire|whole) (?:prompt|context)\b"),
    (Rule::Conversation, 3, r"\btranscript of (?:this|the|our|your) (?:dialog(?:ue)?|conversation|chat|session)|\b(?:print|show|output|reveal|repeat|quote)\b[^\n]{0,20}\bdeveloper (?:message|prompt)|\b(?:names?|list) of all (?:connected |available |other )?(?:servers|tools)\b"),
    (Rule::SideChannel, 4, r"\b(?:name|version|identity|provider) of the (?:[a-z]+ )?(?:llm|model|agent|assistant)\b[^\n]{0,20}\b(?:that |which )?(?:call|invok|use|is us|mak)"),
    (Rule::SelfPromotion, 4, r"\bthe (?:best|greatest|most [a-z]+) (?:[a-z]+ )?tool (?:in the world|ever|of all|on earth|available|there is)|\b(?:always|must) (?:use|prefer|choose|select|pick) this (?:tool|one|server) (?:over|instead|rather|above)|\bprefer this (?:tool )?(?:over|to) (?:any|all|every|the) other|\bsuperior to (?:all|any|every|the) other|\bany ?time the user asks anything"),
];

const MENTION: &str = r"\b(?:detect[a-z]*|checks? (?:whether|for|if)|scan(?:s|ner|ning)?|flags?|identif[a-z]*|prevent[a-z]*|blocks|blocking|reject[a-z]*|refus[a-z]*|phrases? like|such as|like|attempts? to|tries to|try to|that ask|whether|protect[a-z]*|reports? (?:a|an|the)|e\.g|for (?:instance|example)|lints?|audits)\b";

const LIMIT: &str = r"(?:more than|a menos que|salvo que|sauf si|es sei denn|unless|twice|again|until|over and over|repeatedly|too often)";

const NEGATION: &str = r"\b(?:never|not)\s*$|\bnever [a-z ]{0,20}$";

const NEGATIVES: &str = r"\b(?:do not|never|must not|don't|not)\b";

/// Every relevant match contains at least one of these; a test verifies that for the measured corpus.
#[rustfmt::skip]
const GATES: &[&str] = &[
    r"ignor", r"disregard", r"forget", r"overrid", r"bypass", r"neglect", r"discard", r"abandon", r"countermand",
    r"void", r"lifted", r"obsolete", r"supersed", r"outdated", r"suspended", r"revoked", r"not apply", r"no longer",
    r"you are now", r"you're now", r"instead of", r"rather than", r"in place of", r"over the user", r"precedence",
    r"overrul", r"stop follow", r"stop obey", r"obey", r"to be followed", r"to be executed", r"treat ", r"pretend",
    r"jailbreak", r"act as:", r"simulate", r"trust all", r"unrestricted", r"without restriction", r"skip ",
    r"skips ", r"disable", r"turn off", r"system prompt", r"system message", r"system:", r"system note",
    r"system override", r"system directive", r"system_", r"assistant:", r"assistant,", r"admin", r"<important",
    r"<system", r"<info", r"<instr", r"<secret", r"<hidden", r"<crit", r"<direct", r"<polic", r"<prior", r"<rules",
    r"<develop", r"<assist", r"<overr", r"<tool", r"\[system", r"\[inst", r"\[import", r"\[admin", r"\[hidden",
    r"\[assist", r"im_start", r"im_end", r"<<sys", r"developer", r"directive", r"instruction", r"guideline",
    r"guardrail", r"safeguard", r"from the user", r"from user", r"signed", r"note to", r"note for", r"hint for",
    r"message to", r"message from", r"reminder", r"attention", r"new policy", r"new rules", r" mode", r"training",
    r"not tell", r"not inform", r"not notify", r"not mention", r"not reveal", r"not disclos", r"not alert",
    r"not let", r"not bring", r"not refer", r"not discuss", r"not report", r"not announce", r"not say", r"not talk",
    r"not speak", r"n't tell", r"n't mention", r"n't reveal", r"n't let", r"never", r"must not", r"should not",
    r"shouldn", r"shall not", r"avoid", r"refrain", r"no need", r"not necessary", r"need not", r"without ",
    r"may not", r"cannot", r"can't", r"not be", r"not to be", r"nothing", r"quiet", r"silent", r"secret", r"hidden",
    r"unnoticed", r"conceal", r"hide", r"hiding", r"withhold", r"obscur", r"covert", r"stealth", r"discreet",
    r"surreptit", r"background", r"behind the", r"nobody", r"no one", r"unbeknown", r"unaware", r"no reason",
    r"no point", r"between us", r"say nothing", r"leave this", r"leave it", r"leave that", r"omit this", r"omit it",
    r"exclude", r"make it look", r"make it appear", r"make it seem", r"memory", r"do not list", r"do not count",
    r"do not show", r"do not display", r"do not print", r"as if", r"confirm", r"consent", r"approv", r"opted",
    r"no questions", r"behalf", r"asking", r"\.ssh", r"\.aws", r"\.env", r"id_rsa", r"id_ed", r"id_ecdsa",
    r"passwd", r"shadow", r"sudoers", r"mcp\.json", r"\.kube", r"\.netrc", r"\.npmrc", r"\.pypirc", r"\.docker",
    r"\.gnupg", r"\.cursor", r"\.claude", r"\.codex", r"_history", r"\.git-cred", r"gcloud", r"authorized_keys",
    r"environ", r"credential", r"password", r"passphrase", r"private key", r"private_key", r"ssh key", r"ssh-",
    r"api key", r"api_key", r"api-key", r"apikey", r"access token", r"access key", r"auth token", r"bearer",
    r"cookie", r"env var", r"sensitive", r"confidential", r"private info", r"personal", r"home directory",
    r"phone number", r"keychain", r"wallet", r"\.pem", r"address book", r"contacts", r"contact list", r"clipboard",
    r"http", r"@", r"attacker", r"remote", r"external", r"third part", r"our side", r"our server", r"our security",
    r"a copy", r"blind", r"bcc", r"recipient", r"destination", r"payee", r"beneficiary", r"receiver", r"iban",
    r"theft", r"harvest", r"stolen", r"malware", r"backdoor", r"curl", r"wget", r"netcat", r"rm -rf", r"chmod",
    r"prepend", r"prefix", r"append", r"attach", r"transmit", r"submit", r"hand over", r"hand it", r"handed",
    r"upload", r"forward", r"paste", r"goes into", r"supplied", r"additionally", r"0x", r"payload", r"swap the",
    r"audit log", r"access log", r"every time", r"each time", r"whenever", r"any time", r"anytime", r"mcp__",
    r"other tool", r"another tool", r"any tool", r"every tool", r"all tools", r"other server", r"any server",
    r"other function", r"any function", r"any other", r"all others", r"from now on", r"from here on", r"point on",
    r"rest of th", r"future", r"subsequent", r"later ", r"after each", r"after every", r"after this", r"before you",
    r"before answ", r"before respon", r"before provid", r"before return", r"before transl", r"before each",
    r"before every", r"before the", r"prerequisite", r"mandatory", r"be run first", r"be called first",
    r"be invoked first", r"be used first", r"through this", r"route all", r"compromised", r"insecure",
    r"every answer", r"every reply", r"every response", r"every message", r"each of your", r"every call",
    r"regardless", r"no matter", r"whatever", r"also call", r"also invoke", r"also use", r"also run", r"also send",
    r"blocked until", r"otherwise", r"given to", r"passed to", r"sent to", r"hacked", r"every file", r"agent must",
    r"agent shall", r"agent has", r"agents must", r"assistant must", r"assistant shall", r"assistant is",
    r"model must", r"model shall", r"model switches", r"models must", r"llm must", r"llm should", r"if the ",
    r"if `", r"once the", r"when the ", r"when `", r"when \(", r"chain of", r"chain-of", r"reasoning", r"tools you",
    r"tools that you", r"tools and", r"functions you", r"conversation", r"chat", r"dialog", r"transcript",
    r"user messages", r"last messages", r"user has", r"user said", r"user told", r"user wrote", r"everything",
    r"word for word", r"verbatim", r"of the llm", r"of the model", r"of the agent", r"of the assistant",
    r"llm model", r"names of all", r"list of all", r"best tool", r"greatest", r"always use", r"always prefer",
    r"always choose", r"must use", r"prefer this", r"superior", r"same authority", r"same weight", r"only to",
    r"above all", r"priority", r"what it ", r"what they ", r"act on", r"carry out", r"comply", r"output of",
    r"contents of", r"content of", r"text of", r"value of", r"values of", r"lines of", r"dump", r"what is in",
    r"take it from", r"look it up", r"ignorier", r"missacht", r"vergiss", r"vergess", r"ubergeh", r"anweisung",
    r"instruktion", r"benutzer", r"nutzer", r"anwender", r"verschweig", r"oubli", r"neglig", r"consigne",
    r"utilisateur", r"insu", r"olvid", r"desconsider", r"descart", r"esquec", r"dimentic", r"trascur", r"usuari",
    r"utente", r"utilizador", r"istruzion", r"instrucci", r"instruco", r"negeer", r"vergeet", r"gebruiker",
    r"pomin", r"zapomnij", r"uzytkownik", r"talimat", r"yonerge", r"kullanici", r"abaikan", r"lupakan", r"bo qua",
    r"phot lo", r"instruksi", r"zugangsdaten", r"passwort", r"mot de passe", r"mots de passe", r"contrasen",
    r"clave", r"chave", r"senha", r"wachtwoord", r"haslo", r"parola", r"sifre", r"sans ", r"sin avis",
    r"sin inform", r"sin decir", r"conversac", r"conversa", r"unterhaltung", r"gesprach", r"rozmow", r"schick",
    r"ubermitt", r"ubergib", r"envoi", r"transmet", r"envia", r"invia", r"stuur", r"wyslij", r"przeslij", r"gonder",
    r"cle privee", r"herramienta", r"ferramenta", r"autre outil", r"altro strumento", r"werkzeug", r"инструкц",
    r"указан", r"правил", r"пользовател", r"юзер", r"парол", r"отправ", r"передай", r"перешл", r"прочит", r"ключ",
    r"разговор", r"диалог", r"переписк", r"инструмент", r"指令", r"指示", r"说明", r"說明", r"提示", r"规则", r"規則", r"告诉",
    r"告訴", r"告知", r"透露", r"密码", r"密碼", r"密钥", r"凭据", r"用户", r"用戶", r"使用者", r"無視", r"命令", r"ルール", r"プロンプト", r"ユーザー",
    r"利用者", r"パスワード", r"認証情報", r"会話", r"送信", r"지시", r"명령", r"지침", r"규칙", r"사용자", r"비밀번호", r"대화", r"전송",
    r"التعليمات", r"الأوامر", r"الإرشادات", r"تعليمات", r"القواعد", r"المستخدم", r"كلمات المرور", r"كلمة المرور",
    r"المحادثة", r"أرسل", r"निर्देश", r"आदेश", r"नियम", r"उपयोगकर्ता", r"यूज़र", r"यूजर", r"पासवर्ड", r"भेज",
    r"बातचीत", r"发送", r"傳入", r"传入", r"上传", r"对话", r"聊天", r"其他工具", r"他のツール", r"다른 도구", r"从现在起", r"系统",
];
