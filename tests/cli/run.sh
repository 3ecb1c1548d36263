#!/bin/sh
# The command, from outside: results, exit codes, JSON, files, signals, hostile names.
#   run.sh ONEMODEL ORACLE_DUMP      ends with "N passed, N failed, N skipped"
set -u
om=$1 dump=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
bad() { failed=$((failed + 1)); printf 'FAIL %s\n' "$1"; sed 's/^/    /' "$work/out" "$work/err" | head -n 12; }
# check NAME EXIT-CODE 'TEXT IN STDOUT OR STDERR' COMMAND...
check() {
    name=$1 want=$2 text=$3
    shift 3
    "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    if [ $code -ne "$want" ]; then
        echo "exit code $code, wanted $want" >>"$work/err"
        bad "$name"
    elif [ -n "$text" ] && ! grep -qF -- "$text" "$work/out" "$work/err"; then
        echo "'$text' was not said" >>"$work/err"
        bad "$name"
    else
        passed=$((passed + 1))
    fi
}
mkdir "$work/wide"
"$dump" "$work" || { echo "the models could not be made"; exit 1; }
cd "$work" || exit 1

check "version" 0 "onemodel 0." "$om" version
check "version prints what was found" 0 "processor: " "$om" version
check "version as JSON" 0 '"schema": "onemodel.version.v1"' "$om" version --json
check "features as JSON" 0 '"features": "' "$om" version --json
check "help" 0 "inspect" "$om" --help
check "help of a command" 0 "--input=NAME=SPEC" "$om" run --help
check "no command" 2 "onemodel COMMAND" "$om"
check "unknown command" 2 "no command 'fly'" "$om" fly
check "unknown option" 2 "no option --fly" "$om" run --fly mlp.onnx
check "option without value" 2 "needs a value" "$om" run mlp.onnx --threads
check "no file" 2 "one model file" "$om" inspect
check "-- ends options" 4 "--json" "$om" inspect -- --json

check "inspect" 0 "can be run in Exact" "$om" inspect cnn.onnx
check "inspect lists nodes" 0 "= Conv(" "$om" inspect -n cnn.onnx
check "inspect lists weights by state-dict path" 0 "c1.weight float32 [10, 3, 3, 3] 1080 bytes" "$om" inspect -w cnn.onnx
check "inspect as JSON" 0 '"schema": "onemodel.inspect.v1"' "$om" inspect --json cnn.onnx
check "symbolic axes are named" 0 "x float32 [batch, 2, height, width]" "$om" inspect residual.onnx
check "missing file" 4 "none.onnx" "$om" inspect none.onnx
check "directory" 4 "" "$om" inspect .
printf 'hello, this is no model\n' >text.onnx
check "text is refused" 3 "text.onnx" "$om" inspect text.onnx
head -c 300 cnn.onnx >cut.onnx
check "a cut file is refused" 3 "cut.onnx" "$om" run cut.onnx

check "run" 0 "y sha256" "$om" run mlp.onnx --input x=@mlp.1.x.npy --output y=y.npy
if cmp -s y.npy mlp.1.y.npy; then passed=$((passed + 1)); else bad "the saved output has eager's bytes"; fi
check "run as JSON" 0 '"schema": "onemodel.run.v1"' "$om" run --json mlp.onnx --symbol batch=3
check "sizes of symbols" 0 "float32 [3,7]" "$om" run mlp.onnx --symbol batch=3
check "generated inputs" 0 "float32 [2,7]" "$om" run mlp.onnx -i x=zeros:shape=2x20
check "int64 inputs are generated too" 0 "float32 [1,5]" "$om" run embedding.onnx
check "unknown input" 2 "no such input" "$om" run mlp.onnx -i z=zeros
check "unknown output" 2 "no such output" "$om" run mlp.onnx -o z=z.npy
check "a generated input of 2^64 elements is refused" 3 "more elements than can be addressed" "$om" run mlp.onnx -i x=range:shape=4611686018427387904x4
check "bad spec" 2 "random" "$om" run mlp.onnx -i x=noise
check "wrong shape" 3 "x" "$om" run mlp.onnx -i x=zeros:shape=2x21
check "fast arithmetic" 0 "y sha256" "$om" run --fast cnn.onnx
check "output folder that is not there" 4 "no/such" "$om" run mlp.onnx -o y=no/such/y.npy
check "no space" 4 "" "$om" run mlp.onnx -o y=/dev/full
check "stdout that is full" 4 "stdout" sh -c "exec '$om' inspect mlp.onnx >/dev/full"
check "memory limit" 5 "limit" "$om" run --memory-limit=20K cnn.onnx
check "bad memory limit" 2 "512M" "$om" run --memory-limit=lots cnn.onnx

check "verify" 0 "equal bits" "$om" verify transformer.onnx
check "verify writes" 0 "" "$om" verify mlp.onnx --write h.json
check "verify expects" 0 "equal bits" "$om" verify mlp.onnx --expect h.json --isa scalar --threads 1,3
check "verify: another model differs" 1 "differ" "$om" verify mlp.onnx --expect h.json -i x=zeros
check "verify: not a hash file" 3 "verify --write" "$om" verify mlp.onnx --expect mlp.onnx
check "verify: bad list" 2 "scalar, avx2" "$om" verify mlp.onnx --isa sse9
check "report" 0 "wrote r.html" "$om" report cnn.onnx -o r.html
check "report is one offline page" 1 "" grep -qE 'https?://|<script|src=' r.html
check "environment: bad column" 2 "ONEMODEL_ISA" env ONEMODEL_ISA=sse9 "$om" version
check "environment: threads" 0 "1 threads" env ONEMODEL_THREADS=1 "$om" version
check "environment: column" 0 "scalar" env ONEMODEL_ISA=scalar "$om" version

# A model whose names carry escape sequences: the name "x" of the MLP's input replaced by an ESC, same length.
LC_ALL=C sed 's/batch/b\x1b[3m/g' mlp.onnx >names.onnx
LC_ALL=C sed 's/strides/stridez/g' cnn.onnx >attr.onnx
check "inspect lists an attribute that no Conv has" 1 "attribute 'stridez' is not defined for Conv" "$om" inspect attr.onnx
check "and run refuses it by node" 3 "(Conv, #" "$om" run attr.onnx
check "hostile names load" 0 'b\x1b[3m' "$om" inspect names.onnx
if LC_ALL=C grep -q "$(printf '\033')" "$work/out" "$work/err"; then bad "no control character from a model reaches the terminal"; else passed=$((passed + 1)); fi
check "nor into JSON" 0 '\u001b' "$om" inspect --json names.onnx

# Valid files with extreme attributes: a Conv whose pads, dilations and strides are 2^30 and about 2^31, a Conv of weights
# [1, 0, 2^29, 2^29], a MaxPool with a kernel of 2^31-1 on 4x4.
unpack() { printf '%s' "$2" | base64 -d >"$1"; }
unpack far.onnx CAg62AEKaAoBeAoBdxIBeSIEQ29udiohCgRwYWRzQICAgIAEQICAgIAEQICAgIAEQICAgIAEoAEHKhoKCWRpbGF0aW9uc0D/////B0D/////B6ABByoYCgdzdHJpZGVzQICAgIAEQICAgIAEoAEHEgFnKi8IAQgCCAIIAhABQgF3SiAAAIA/AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAP1obCgF4EhYKFAgBEhAKAggBCgIIAgoCCAEKAggBYhsKAXkSFgoUCAESEAoCCAEKAggBCgIIAgoCCAJCBAoAEBE=
unpack hollow.onnx CAg6igEKMgoBeAoBdxIBeSIEQ29udiohCgRwYWRzQICAgIABQICAgIABQICAgIABQICAgIABoAEHEgFnKhcIAQgACICAgIACCICAgIACEAFCAXdKAFobCgF4EhYKFAgBEhAKAggBCgIIAAoCCAEKAggBYhsKAXkSFgoUCAESEAoCCAEKAggBCgIIAgoCCAJCBAoAEBE=
unpack pool.onnx CAg6kAEKUQoBeBIBeSIHTWF4UG9vbCodCgxrZXJuZWxfc2hhcGVA/////wdA/////wegAQcqIQoEcGFkc0D/////A0D/////A0D/////A0D/////A6ABBxIBZ1obCgF4EhYKFAgBEhAKAggBCgIIAQoCCAQKAggEYhsKAXkSFgoUCAESEAoCCAEKAggBCgIIAwoCCANCBAoAEBE=
check "conv with pads of 2^30 is refused" 5 "padded extent 2147483649" "$om" run far.onnx
check "conv with a kernel of 2^58 is refused" 0 "onemodel: hollow.onnx" sh -c "'$om' run hollow.onnx --threads 8; case \$? in 3|5) ;; *) exit 1 ;; esac"
check "max pool with a kernel of 2^31-1 in time" 0 "[[[[1.83218, 1.83218, 1.83218, 1.83218]," "$om" run pool.onnx --timeout=2s

# Facts, once, with the node: sizes that cannot be, bytes that do not fit, memory that there is not.
unpack sizes.onnx CAk6WgoNCgF3EgFzIgVTaGFwZQoXCgFzEgF5IgRDYXN0KgkKAnRvGAGgAQISAWcqEQgACICAgICAgICAQBABQgF3Wg8KAXgSCgoICAESBAoCCAFiCQoBeRIECgIIAUIECgAQFA==
unpack asks.onnx CAk6XgoXCgFuEgFjIg9Db25zdGFudE9mU2hhcGUKEwoBYwoBeBIBeRoDc3VtIgNBZGQSAWcqDwgBEAc6BoCAgICAAkIBbloPCgF4EgoKCAgBEgQKAggBYgkKAXkSBAoCCAFCBAoAEBQ=
unpack both.onnx CAk6WQojCgF4EgFhGgVmaXJzdCIHU29mdG1heCoLCgRheGlzGGOgAQIKEwoBYRIBeRoGc2Vjb25kIgNGb28SAWdaDwoBeBIKCggIARIECgIIAWIJCgF5EgQKAggBQgQKABAU
check "sizes beyond what can be addressed are named" 1 "initializer 'w': its sizes [0,4611686018427387904] are beyond" "$om" inspect sizes.onnx
check "memory that there is not names the node" 5 "for the values of one run; the largest value is 'c' of node #0 (ConstantOfShape), 274877906944 bytes" env ASAN_OPTIONS="${ASAN_OPTIONS:-}:allocator_may_return_null=1" "$om" run asks.onnx
check "inspect lists each problem on its own line" 1 "cannot be run: 2 problems, above" "$om" inspect both.onnx
if [ "$(grep -c "^  node '" "$work/out")" -eq 2 ] && ! grep -qF 'x0a' "$work/out"; then passed=$((passed + 1)); else bad "two problems, two lines"; fi
mkdir folder
head -c 100 cnn.onnx >folder/cut.onnx
check "a reader's refusal" 3 "onemodel: folder/cut.onnx: byte" "$om" inspect folder/cut.onnx
if [ "$(grep -o cut.onnx "$work/err" | wc -l)" -eq 1 ]; then passed=$((passed + 1)); else bad "names its file once"; fi
check "a file that is not there is named once" 4 "onemodel: cannot open 'none.om'" "$om" inspect none.om
# Models of many inputs.
check "verify with 65 inputs" 0 "equal bits" "$om" verify wide/wide.onnx --isa scalar
check "50,000 inputs in time" 0 "y sha256" "$om" run wide/wider.onnx --timeout=20s
check "and the clock is seen while they are bound" 5 "timeout" "$om" run wide/wider.onnx --timeout=1ms

check "timeout" 5 "timeout" "$om" run residual.onnx --timeout=20ms -i x=random:shape=600x2x64x64
"$om" run residual.onnx -i x=random:shape=3000x2x64x64 -o y=never.npy >out 2>err &
pid=$!
sleep 0.3
kill -INT $pid 2>/dev/null
wait $pid
code=$?
# A background job of sh ignores SIGINT unless the program takes it: the command does.
if [ $code -eq 130 ] && [ ! -e never.npy ]; then passed=$((passed + 1)); else echo "exit code $code" >err; bad "Ctrl-C stops with 130 and leaves no file"; fi
if [ "$(ls | grep -c '\.part$\|\.tmp')" -eq 0 ]; then passed=$((passed + 1)); else bad "no partial file stays"; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
