-- Entries of logs. Numbers are never used again, also not those of entries that were dropped.
create table log (
    number integer primary key autoincrement,
    space text not null,
    at integer not null,
    value blob not null
) strict;

create index log_by_time on log (space, at);

-- How many bytes the values of each log have, so that nobody has to add them up to know.
create table log_size (
    space text primary key,
    bytes integer not null
) strict;
