-- The number of the latest write. One row; every write takes the next number, so that no revision ever comes twice.
create table revision (
    latest integer not null
) strict;

insert into revision (latest) values (0);

-- The value stands last: a list reads the columns before it and never the pages a large value overflows to.
create table record (
    space text not null,
    key text not null,
    revision integer not null,
    written_at integer not null,
    expires_at integer,
    value blob not null,
    primary key (space, key)
) strict;

create index record_by_end on record (expires_at) where expires_at is not null;
