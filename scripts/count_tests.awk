# Counts the cases in the output of `ctest -V`: prints "passed failed skipped".
#
# ctest prefixes each line with the number of its test ("12: "). A program's cases are cmocka's
# "[  PASSED  ] N test(s)." lines (one per group of a program) or its "N passed, N failed[, N skipped]". A
# program that ctest calls failed and that counted no failure itself is one failed case: it crashed, or was
# stopped by its timeout.
{
    id = ""
    if (match($0, /^[0-9]+: /)) {
        id = substr($0, 1, RLENGTH - 2)
        line = substr($0, RLENGTH + 1)
    }
}
id != "" && line ~ /^\[  PASSED  \] [0-9]+ test/ { split(line, w, " "); passed += w[4] }
id != "" && line ~ /^\[  SKIPPED \] [0-9]+ test|^\[  SKIPPED \] .*: [0-9]+ test/ {
    if (match(line, /[0-9]+ test/)) skipped += substr(line, RSTART, RLENGTH - 5)
}
id != "" && line ~ /^\[  FAILED  \] .*: [0-9]+ test|^\[  FAILED  \] [0-9]+ test/ {
    if (match(line, /[0-9]+ test/)) { n = substr(line, RSTART, RLENGTH - 5); failed += n; own[id] += n }
}
id != "" && line ~ /^([^ ]+: )?[0-9]+ passed, [0-9]+ failed/ {
    sub(/^[^ ]+: /, "", line)
    split(line, w, " ")
    passed += w[1]
    failed += w[3]
    own[id] += w[3]
    if (w[6] ~ /skipped/) skipped += w[5]
}
id == "" && /^ *[0-9]+\/[0-9]+ Test +#[0-9]+:/ && !/ Passed / {
    match($0, /#[0-9]+:/)
    k = substr($0, RSTART + 1, RLENGTH - 2)
    if ($0 ~ /Skipped|Not Run \(Disabled\)/) skipped++
    else bad[k] = 1
}
/No tests were found/ { none = 1 }
END {
    for (k in bad)
        if (!own[k]) failed++
    print passed + 0, failed + 0, skipped + 0
}
