/* Worked values: one row an operation and case, called by name, so that the table of operations,
 * the parser and the printer are tested with them. A result that starts with `!` is the name of an
 * error, followed by a word that its message must have. */
#include <stdio.h>
#include <string.h>

#include "support/layout_cases.h"
#include "tiki/layout_call.h"

typedef struct row {
    const char *op;
    const char *args[3];
    const char *expected;
} row;

static void run(const row *rows, size_t count) {
    char text[16384];
    for (size_t i = 0; i < count; i++) {
        const row *row = &rows[i];
        tk_layout_value args[3], result;
        int given = 0;
        tk_status status = TK_OK;
        for (; given < 3 && row->args[given] && status == TK_OK; given++)
            status = tk_layout_value_parse(row->args[given], &args[given]);
        if (status == TK_OK) status = tk_layout_call(row->op, args, given, &result);
        if (status == TK_OK)
            tk_layout_value_print(&result, text, sizeof text);
        else
            snprintf(text, sizeof text, "!%s", tk_status_name(status));
        const char *bar = strchr(row->expected, '|');
        size_t length = bar ? (size_t)(bar - row->expected) : strlen(row->expected);
        bool same = strlen(text) == length && !strncmp(text, row->expected, length);
        if (same && bar) same = strstr(tk_error_message(), bar + 1) != NULL;
        if (!same)
            fail_msg("%s %s %s %s: %s (%s), expected %s", row->op, row->args[0],
                     row->args[1] ? row->args[1] : "", row->args[2] ? row->args[2] : "", text,
                     status == TK_OK ? "" : tk_error_message(), row->expected);
    }
}

#define RUN(rows) run(rows, sizeof(rows) / sizeof *(rows))

/* Every value that the reference of the algebra works out. */
static void reference(void **state) {
    (void)state;
    static const row rows[] = {
        {"print", {"(1,(2,?))"}, "(1,(2,?))"},
        {"print", {"?{i64}"}, "?{i64}"},
        {"print", {"?{div=16}"}, "?{div=16}"},
        {"print", {"?{i64 div=8}"}, "?{i64 div=8}"},
        {"print", {"(0,4)"}, "(0,4)"},
        {"make_layout", {"(0,4)"}, "!shape error|at least 1"},
        {"print", {"4@0"}, "4@0"},
        {"print", {"1@1@0"}, "1@1@0"},
        {"print", {"?@1"}, "?@1"},
        {"print", {"(_,?)"}, "(_,?)"},
        {"print", {"(4,8):(1,4)"}, "(4,8):(1,4)"},
        {"print", {"((2,4),8):((1,16),2)"}, "((2,4),8):((1,16),2)"},
        {"print", {"[16:1;(2,4):(1,2);_]"}, "[16:1;(2,4):(1,2);_]"},
        {"print", {"S<3,4,3> o 0 o (8,64):(64,1)"}, "S<3,4,3> o 0 o (8,64):(64,1)"},
        {"zipped_divide", {"(?,24):(24,1)", "[16:1;8:1]"}, "((16,8),(?,3)):((24,1),(384,8))"},
        {"eval", {"((16,8),(?,3)):((24,1),(384,8))", "((?,0),(?,2))"}, "?{div=8}"},
        {"compatible", {"24", "(4,6)"}, "true"},
        {"compatible", {"(4,6)", "((2,2),(3,2))"}, "true"},
        {"coalesce", {"(16,?):(8,128)"}, "(16,?):(8,128)"},
        {"composition", {"(6,2):(8,2)", "(4,3):(3,1)"}, "((2,2),3):((24,2),8)"},
        {"composition", {"(4,6):(1,4)", "3:0"}, "3:0"},
        {"composition", {"(4,6):(1,4)", "1:7"}, "1:0"},
        {"composition", {"(4,6,2):(3,4,16)", "4:3"}, "!shape error|at c = 3 B is 9"},
        {"composition", {"(4,4):(3,24)", "((4,2),(6,1,1)):((1,0),(2,1,0))"}, "!shape error|carry"},
        {"logical_divide", {"(2,6):(1,2)", "3:1"}, "(3,4):(1,3)"},
        /* What a tile leaves of unknown extents goes to the end of each. */
        {"logical_divide", {"(?{div=16},2):(2,1)", "4:1"}, "(4,(?{div=4},2)):(2,(8,1))"},
        {"logical_divide", {"(24,?,4):(1,32,?)", "8:1"}, "(8,(3,?,4)):(1,(8,32,?))"},
        {"logical_divide",
         {"(24,?{div=16},4):(1,32,?)", "(8,2):(1,24)"},
         "((8,2),(3,(?{div=8},4))):((1,32),(8,(64,?)))"},
        {"flat_divide", {"(?{div=16},1,2):(2,4,1)", "(4):(1)"}, "(4,?{div=4},2):(2,8,1)"},
        {"logical_divide", {"(?,24):(24,1)", "16:1"}, "!unsupported|? divides 16"},
        {"logical_divide", {"(24,?,4):(1,32,?)", "5:1"}, "!unsupported|missing fact"},
        {"make_identity_layout", {"(4,8)"}, "(4,8):(1@0,1@1)"},
        {"eval", {"S<3,4,3>", "1016"}, "904"},
        {"eval", {"S<2,4,3>", "384"}, "432"},
        {"eval", {"S<1,4,3>", "128"}, "144"},
        {"eval", {"S<3,4,3>", "15"}, "15"},
    };
    RUN(rows);
}

static void looks(void **state) {
    (void)state;
    static const row rows[] = {
        {"size", {"(4,8):(1,4)"}, "32"},
        {"size", {"(4,(2,3))"}, "24"},
        {"size", {"():()"}, "1"},
        {"cosize", {"(4,8):(1,5)"}, "39"},
        {"cosize", {"(4,8):(-1,4)"}, "32"},
        {"cosize", {"(4,8):(1@0,1@1)"}, "32"},
        {"rank", {"(4,(2,3)):(1,(4,8))"}, "2"},
        {"rank", {"4:1"}, "1"},
        {"depth", {"(4,(2,3)):(1,(4,8))"}, "2"},
        {"depth", {"4:1"}, "0"},
        {"depth", {"():()"}, "1"},
        {"get", {"(4,(2,3)):(1,(4,8))", "(1,0)"}, "2:4"},
        {"get", {"(4,(2,3)):(1,(4,8))", "1"}, "(2,3):(4,8)"},
        {"get_shape", {"(4,(2,3)):(1,(4,8))"}, "(4,(2,3))"},
        {"get_stride", {"(4,(2,3)):(1,(4,8))"}, "(1,(4,8))"},
        {"eval", {"(3,(4,5)):(1,(7,100))", "70"}, "522"},
        {"eval", {"(3,(4,5)):(1,(7,100))", "(2,3)"}, "23"},
        {"eval", {"(3,(4,5)):(1,(7,100))", "(2,(3,4))"}, "423"},
        {"eval", {"(4,(2,3)):(1@0,(1@0@1,1@1@1))", "13"}, "(1,(1,1))"},
        {"eval", {"S<3,4,3> o 0 o (8,64):(64,1)", "(1,0)"}, "64"},
        {"eval", {"S<3,4,3> o 0 o (8,64):(64,1)", "(2,0)"}, "144"},
        {"eval", {"(8,16):(16,4)", "?"}, "?{div=4}"},
        {"eval", {"(8,16):(16,4)", "(?,?{div=16})"}, "?{div=16}"},
        {"idx2crd", {"50", "(3,(4,5))"}, "(2,(0,4))"},
        {"idx2crd", {"70", "(3,(4,5))"}, "(1,(3,5))"},
        {"crd2idx", {"(2,(3,4))", "(3,(4,5))"}, "59"},
        {"crd2idx", {"70", "(3,(4,5)):(1,(7,100))"}, "522"},
        {"increment_coord", {"(2,(3,0))", "(3,(4,5))"}, "(0,(0,1))"},
        {"increment_coord", {"(2,(3,4))", "(3,(4,5))"}, "(0,(0,0))"},
        {"is_injective", {"(2,2):(2,3)"}, "true"},
        {"is_injective", {"(4,2):(1,2)"}, "false"},
        {"is_injective", {"(4194304,4194304):(1,1)"}, "false"},
        {"is_injective", {"(4194304,4194304):(2,3)"}, "false"},
        {"is_injective", {"(4194304,4194304):(1,4194304)"}, "true"},
        {"is_injective", {"(4,2):(-1,-2)"}, "false"},
        /* No two of the three meet, but all do: 3 * 10 = 2 * 6 + 18. */
        {"is_injective", {"(3,4,2):(6,10,18)"}, "false"},
        {"is_injective", {"(1048576,1048576,1048576):(1048573,1048574,1099508482050)"}, "false"},
        {"is_injective", {"(1048576,1048576,1048576):(1,1048577,1099513724929)"}, "true"},
        {"is_injective", {"(1000,1000,1000,1000):(7,7001,7007002,7014009003)"}, "true"},
        {"is_compact", {"(4,2):(2,1)"}, "true"},
        {"is_compact", {"(4,2):(4,1)"}, "false"},
        {"congruent", {"(4,(2,3))", "(1,(1,1))"}, "true"},
        {"congruent", {"(4,(2,3))", "(1,1)"}, "false"},
        {"weakly_congruent", {"(4,6)", "((2,2),(3,2))"}, "true"},
        {"compatible", {"24", "(4,6)"}, "true"},
        {"compatible", {"(4,6)", "((2,2),(3,2))"}, "true"},
        {"compatible", {"((2,2),(3,2))", "(4,6)"}, "false"},
        {"compatible", {"(4,6)", "(6,4)"}, "false"},
        {"elem_less", {"(1,2)", "(3,4)"}, "true"},
        {"elem_less", {"(1,4)", "(3,4)"}, "false"},
        {"equal", {"(4,2):(1,4)", "( 4, 2 ) : (1,4)"}, "true"},
        {"equal", {"(4):(1)", "4:1"}, "false"},
    };
    RUN(rows);
}

static void makes(void **state) {
    (void)state;
    static const row rows[] = {
        {"make_layout", {"(4,(2,3))"}, "(4,(2,3)):(1,(4,8))"},
        {"make_layout", {"(4,2)", "(2,1)"}, "(4,2):(2,1)"},
        {"make_layout", {"(4,2)", "(2)"}, "!shape error|structures"},
        {"make_layout", {"4:2", "(2,3):(1,8)"}, "(4,(2,3)):(2,(1,8))"},
        {"make_layout", {"4:2", "(2,3)"}, "!invalid argument|a layout"},
        {"make_ordered_layout", {"(4,(2,3),5)", "(1,(0,2),0)"}, "(4,(2,3),5):(10,(1,40),2)"},
        {"make_ordered_layout", {"(4,2,5)", "(1,1,0)"}, "(4,2,5):(5,20,1)"},
        {"make_ordered_layout", {"(4,2,5)", "(1,1,1)"}, "(4,2,5):(1,4,8)"},
        {"make_ordered_layout", {"(?,?{i64},3)", "(1,0,2)"}, "(?,?{i64},3):(?{i64},1,?{i64})"},
        {"make_layout_like", {"(4,2,3):(6,0,1)"}, "(4,2,3):(3,0,1)"},
        {"make_layout_like", {"(4,?,3):(6,0,1)"}, "(4,?,3):(3,0,1)"},
        {"make_identity_layout", {"(4,(2,3))"}, "(4,(2,3)):(1@0,(1@0@1,1@1@1))"},
        {"make_identity_layout", {"4"}, "4:1"},
        {"make_composed_layout",
         {"S<3,4,3>", "0", "(8,64):(64,1)"},
         "S<3,4,3> o 0 o (8,64):(64,1)"},
        {"make_composed_layout",
         {"(4,4):(1,9)", "(1,2)", "(2,2):(1@0,1@1)"},
         "(4,4):(1,9) o (1,2) o (2,2):(1@0,1@1)"},
        {"eval", {"(4,4):(1,9) o (1,2) o (2,2):(1@0,1@1)", "(1,1)"}, "29"},
        {"make_layout_tv", {"(4,8):(8,1)", "(2,4):(4,1)"}, "(8,32)\t((8,4),(4,2)):((32,2),(8,1))"},
        {"composition", {"S<3,4,3>", "(8,64):(64,1)"}, "S<3,4,3> o 0 o (8,64):(64,1)"},
        {"eval", {"S<3,4,3>", "128"}, "144"},
    };
    RUN(rows);
}

static void rearranges(void **state) {
    (void)state;
    static const row rows[] = {
        {"coalesce", {"(2,(1,6)):(1,(6,2))"}, "12:1"},
        {"coalesce", {"(1,1):(3,4)"}, "1:0"},
        {"coalesce", {"(2,(1,6)):(1,(6,2))", "(1,1)"}, "(2,6):(1,2)"},
        {"coalesce",
         {"((2,2),(1,6),(2,2)):((1,2),(6,4),(1,2))", "(1,1)"},
         "(4,6,(2,2)):(1,4,(1,2))"},
        {"coalesce", {"(4,2):(1,4)", "(1,1,1)"}, "!shape error|profile"},
        {"coalesce", {"(16,?):(8,128)"}, "(16,?):(8,128)"},
        {"coalesce", {"(2,16,?,2,2):(4,8,128,1,2)"}, "(32,?,4):(4,128,1)"},
        {"coalesce", {"S<3,4,3> o 0 o ((2,4),64):((64,128),1)"}, "S<3,4,3> o 0 o (8,64):(64,1)"},
        {"flatten", {"(4,(8,2),3):(1,(4,32),64)"}, "(4,8,2,3):(1,4,32,64)"},
        {"flatten", {"4:1"}, "4:1"},
        {"group_modes", {"(4,8,3):(1,4,32)", "1", "3"}, "(4,(8,3)):(1,(4,32))"},
        {"select", {"(4,8,3):(1,4,32)", "(2,0)"}, "(3,4):(32,1)"},
        {"filter", {"(4,2,3):(1,0,4)"}, "12:1"},
        {"filter", {"(?,4,3):(0,1,?)"}, "(4,3):(1,?)"},
        {"filter_zeros", {"(4,2,3):(1,0,4)"}, "(4,1,3):(1,0,4)"},
        {"append", {"(4,2):(1,4)", "4"}, "(4,2,1,1):(1,4,0,0)"},
        {"append", {"(4,2):(1,4)", "4", "3:8"}, "(4,2,3,3):(1,4,8,8)"},
        {"append", {"4:1", "3:4"}, "(4,3):(1,4)"},
        {"append", {"S<3,4,3> o 0 o (8,64):(64,1)", "2:1@0"}, "!shape error|integer offsets"},
        {"prepend", {"4:1", "3:4"}, "(3,4):(4,1)"},
        {"slice", {"(4,(8,2),3):(1,(4,32),64)", "(_,(2,_),1)"}, "(4,2):(1,32)"},
        {"slice", {"(4,(8,2),3):(1,(4,32),64)", "(1,1,1)"}, "():()"},
        {"slice", {"(4,(8,2),3):(1,(4,32),64)", "_"}, "(4,(8,2),3):(1,(4,32),64)"},
        {"slice_offset", {"(4,(8,2),3):(1,(4,32),64)", "(_,(2,_),1)"}, "72"},
        {"slice", {"S<3,4,3> o 0 o (8,64):(64,1)", "(1,_)"}, "S<3,4,3> o 64 o (64):(1)"},
        {"slice", {"S<1,4,3> o 0 o (8,64):(-64,1)", "(3,_)"}, "!shape error|not negative"},
        {"dice", {"(4,(8,2),3):(1,(4,32),64)", "(_,(2,_),1)"}, "(8,3):(4,64)"},
        {"recast_layout", {"16", "8", "(4,8):(1,4)"}, "(2,8):(1,2)"},
        {"recast_layout", {"8", "16", "(4,8):(1,4)"}, "(8,8):(1,8)"},
        {"recast_layout", {"16", "8", "(3,8):(1,4)"}, "(2,8):(1,2)"},
        {"recast_layout", {"32", "8", "(3,8):(2,8)"}, "(2,8):(1,2)"},
        {"recast_layout", {"24", "16", "(12,8):(1,12)"}, "(8,8):(1,8)"},
        {"recast_layout", {"16", "8", "(4,8):(1,0)"}, "(2,8):(1,0)"},
        {"recast_layout", {"16", "8", "(4,?):(1,?{div=16})"}, "(2,?):(1,?{div=8})"},
        {"recast_layout", {"16", "8", "(4,?):(1,?)"}, "!unsupported|missing fact"},
        {"recast_layout", {"32", "8", "(4,8):(3,12)"}, "!shape error|divides"},
        {"recast_layout",
         {"16", "8", "S<3,4,3> o 0 o (8,64):(64,1)"},
         "S<3,3,3> o 0 o (8,32):(32,1)"},
        {"recast_layout",
         {"8", "16", "S<3,3,3> o 8 o (8,32):(32,1)"},
         "S<3,4,3> o 16 o (8,64):(64,1)"},
        {"recast_layout", {"16", "8", "S<3,0,3> o 0 o (8,64):(64,1)"}, "!shape error|base"},
        {"recast_layout", {"24", "8", "S<3,4,3> o 0 o (9,64):(64,1)"}, "!shape error|power of two"},
    };
    RUN(rows);
}

static void composes(void **state) {
    (void)state;
    static const row rows[] = {
        {"composition", {"(6,2):(8,2)", "(4,3):(3,1)"}, "((2,2),3):((24,2),8)"},
        {"composition", {"(12,(4,8)):(59,(13,1))", "[3:4;8:2]"}, "(3,(2,4)):(236,(26,1))"},
        {"composition", {"(12,(4,8)):(59,(13,1))", "[_;8:2]"}, "(12,(2,4)):(59,(26,1))"},
        {"composition", {"(12,(4,8)):(59,(13,1))", "[3:4]"}, "(3):(236)"},
        {"composition", {"(4,3):(1,100)", "8"}, "(4,2):(1,100)"},
        {"composition", {"(4,3):(1,100)", "(8):(1)"}, "((4,2)):((1,100))"},
        {"composition", {"(4,3):(1,100)", "():()"}, "():()"},
        {"composition", {"(4,3):(1,100)", "(1,2):(5,4)"}, "(1,2):(0,100)"},
        /* Beyond the end the last leaf goes on, of extent 1 or not. */
        {"composition", {"(4,1):(1,100)", "8:1"}, "(4,2):(1,100)"},
        {"composition", {"(4,2):(1,100)", "16:1"}, "(4,4):(1,100)"},
        /* Where CuTe gives a layout that is another function. */
        {"composition", {"(4,6,2):(3,4,16)", "4:3"}, "!shape error|at c = 3 B is 9 and A(B) is 11"},
        {"composition", {"(4,4):(3,24)", "((4,2),(6,1,1)):((1,0),(2,1,0))"}, "!shape error|carry"},
        /* Where CuTe refuses and there is an answer. */
        {"composition", {"(4,6):(3,100)", "2:3"}, "2:9"},
        {"composition", {"(4,6):(3,100)", "2:5"}, "2:103"},
        {"composition", {"(8,4):(1,100)", "6:3"}, "(3,2):(3,101)"},
        {"composition", {"(2,2,2):(1,5,7)", "3:3"}, "3:6"},
        {"composition", {"(4,3):(1,100)", "4:3"}, "!shape error|c = 3 B is 9 and A(B) is 201"},
        {"composition", {"(4,3):(1,100)", "6:1"}, "!shape error|unevenly"},
        /* Carries that cancel, also far beyond what could be enumerated. */
        {"composition", {"(2,2,2):(1,5,7)", "(1048576,1048576):(4,8)"}, "(1048576,1048576):(7,14)"},
        {"composition",
         {"(3,12289,1366):(0,1,12288)", "(4096,4096):(3,12289)"},
         "(4096,4096):(1,4096)"},
        {"composition",
         {"(2,2,2):(1,5,7)", "(1048576,1048576,3):(1,8,3)"},
         "!shape error|at c = (2,0,1)"},
        {"composition", {"(2,2,2):(1@0,5@0,7@0)", "3:3"}, "3:6@0"},
        {"composition", {"(2,2,2):(1@0,1@1,5@0)", "3:3"}, "!shape error|two modes"},
        /* Decided without enumeration, whatever the size. */
        {"composition", {"(1048576,1048576):(1,3000000)", "2097152:3"}, "!shape error|unevenly"},
        {"composition",
         {"(1048576,1048576):(1,3000000)", "1099511627776:1"},
         "(1048576,1048576):(1,3000000)"},
        /* Basis vectors in A and in B. */
        {"composition", {"(8,12):(1@0,1@1)", "(4,3):(2,8)"}, "(4,3):(2@0,1@1)"},
        {"composition", {"(8,12):(12,1)", "(4,3):(1@1,1@0)"}, "(4,3):(1,12)"},
        {"composition", {"((2,4),12):((1,24),2)", "(4,3):(2@0,4@1)"}, "(4,3):(24,8)"},
        {"composition", {"(8,12):(12,1)", "(4,3):(1@2,1@0)"}, "!shape error|mode 2"},
        {"composition", {"(8,12):(12,1)", "(4,3):(1,1@0)"}, "!shape error|mix"},
        {"composition", {"(8,12):(-12,1)", "(4,3):(2,8)"}, "(4,3):(-24,1)"},
        {"composition", {"(8,12):(12,1)", "(4,3):(-2,8)"}, "!shape error|before the first"},
        /* Dynamic leaves: proven, refuted, open. */
        {"composition", {"(4,?):(1,100)", "8:1"}, "(4,2):(1,100)"},
        {"composition", {"(?{div=4},8):(1,100)", "4:1"}, "4:1"},
        {"composition", {"(?{div=4},8):(1,100)", "8:1"}, "!unsupported|missing fact"},
        {"composition", {"(4,8):(1,100)", "?{div=4}:1"}, "(4,?):(1,100)"},
        {"composition", {"(4,8):(1,100)", "?:1"}, "!unsupported|4 divides ?"},
        {"composition", {"(4,8):(1,100)", "?{div=4}:4"}, "?{div=4}:100"},
        {"composition", {"(16,?):(1,16)", "8:4"}, "8:4"},
        {"composition", {"(4,?):(1,4)", "8:1"}, "8:1"},
        {"zipped_divide", {"(4,?):(1,4)", "(2,4)"}, "((2,4),(2,?)):((1,4),(2,16))"},
        {"tiled_divide", {"((3,1),6,?):((1,3),3,18)", "(6,2):(6,3)"}, "((6,2),3,?):((6,3),1,36)"},
        {"composition", {"(16,?):(1,16)", "5:4"}, "5:4"},
        {"composition", {"(16,?):(1,16)", "5000001:4"}, "5000001:4"},
        {"composition", {"8:?{i64}", "4:?"}, "4:?{i64}"},
        /* Unknown extents that B does not reach, that continue what is below, that could. */
        {"composition", {"(4,6,?):(3,4,16)", "4:3"}, "!shape error|at c = 3 B is 9"},
        {"composition", {"(5,?{div=2}):(1,5)", "(2,8):(8,1)"}, "(2,8):(8,1)"},
        {"composition", {"(5,?,7):(1,5,9)", "(2,8):(8,1)"}, "!unsupported|8 < ?{div=5}"},
        {"composition",
         {"(3,?,8):(?{i64},1,?)", "(2,6):(1,2)"},
         "!unsupported|missing fact: the unknown extents of A"},
        {"composition", {"8:?", "4:?{div=16}"}, "4:?{div=16}"},
        {"composition", {"(4,8):(1,100)", "(2,?):(1,2)"}, "!unsupported|missing fact"},
        {"composition",
         {"S<3,4,3> o 0 o (8,64):(64,1)", "[4:1;8:1]"},
         "S<3,4,3> o 0 o (4,8):(64,1)"},
        {"composition", {"(64):(2)", "(8,8):(1,9) o 0 o 8:1"}, "(8,8):(2,18) o 0 o 8:1"},
        {"composition", {"64:2", "S<1,1,2> o 0 o 8:1"}, "8:2"},
        {"composition", {"64:2", "S<1,1,2> o 0 o 16:1"}, "S<1,2,2> o 0 o 16:2"},
        {"composition", {"64:2", "S<1,1,2> o 8 o ?:1"}, "S<1,2,2> o 16 o ?:2"},
        {"composition",
         {"(8,8):(8,1)", "S<3,0,3> o 0 o (8,8):(1,8)"},
         "S<3,0,-3> o 0 o (8,8):(8,1)"},
        {"composition", {"64:3", "S<1,1,2> o 0 o 16:1"}, "!unsupported|each bit"},
        {"composition", {"64:3", "S<1,4,3> o 5 o 8:1"}, "64:3 o 5 o 8:1"},
    };
    RUN(rows);
}

static void complements_and_inverses(void **state) {
    (void)state;
    static const row rows[] = {
        {"complement", {"4:1", "24"}, "6:4"},
        {"complement", {"6:4", "24"}, "4:1"},
        {"complement", {"(4,6):(1,4)", "24"}, "1:0"},
        {"complement", {"4:2", "24"}, "(2,3):(1,8)"},
        {"complement", {"(2,4):(1,6)", "24"}, "3:2"},
        {"complement", {"(2,2):(1,6)", "24"}, "(3,2):(2,12)"},
        {"complement", {"(4,3):(2,16)", "96"}, "(2,2,2):(1,8,48)"},
        {"complement", {"4:1", "(4,6)"}, "6:4"},
        {"complement", {"4:1", "?"}, "?:4"},
        {"complement", {"4:?{div=16}", "?{div=16}"}, "(?{div=16},?):(1,?{div=64})"},
        {"complement", {"(4,3):(1,?)", "24"}, "!unsupported|4 divides ?"},
        /* Refuted only if the unknown extent is not 1. */
        {"complement", {"(16,?):(1,30)", "96"}, "!unsupported|16 divides 30, or which unknown"},
        {"complement", {"(16,?{div=2}):(1,30)", "96"}, "!shape error|no multiple of 16"},
        {"complement", {"(2,2):(1,3)", "24"}, "!shape error|offset 2"},
        {"complement", {"(4,2):(1,2)", "24"}, "!shape error|starts inside"},
        {"complement", {"(4,2):(1,-4)", "24"}, "!shape error|negative"},
        {"right_inverse", {"(4,8):(8,1)"}, "(8,4):(4,1)"},
        {"right_inverse", {"(4,8):(1,4)"}, "32:1"},
        {"right_inverse", {"(4,2):(1,0)"}, "4:1"},
        {"right_inverse", {"(4,4):(2,8)"}, "1:0"},
        {"right_inverse", {"(4,3,2):(1,1,4)"}, "(4,2):(1,12)"},
        {"right_inverse", {"(2,2,4):(1,1,2)"}, "(2,4):(1,4)"},
        {"right_inverse", {"(3,4):(1@1,1@0)"}, "(4,3):(3,1)"},
        {"right_inverse", {"(4,?):(1,4)"}, "!unsupported|static"},
        {"left_inverse", {"4:2"}, "(2,4):(0,1)"},
        {"left_inverse", {"(4,3):(2,16)"}, "(2,8,3):(0,1,4)"},
        {"left_inverse", {"(3,4):(16,1)"}, "(16,3):(3,1)"},
        {"left_inverse", {"(2,3,2):(1,4,20)"}, "(4,5,2):(1,2,6)"},
        {"left_inverse", {"(3,4):(1@1,1@0)"}, "(4,3):(3,1)"},
        {"left_inverse", {"(2,2):(2,3)"}, "(2,3):(1,1)"},
        {"left_inverse", {"(3,4):(40,3)"}, "(40,3):(1,1)"},
        {"left_inverse", {"(4,4):(1,0)"}, "!shape error|0 and 4"},
        {"left_inverse", {"(4,2):(1,2)"}, "!shape error|2 and 4"},
        /* Where the strides do not divide each other. */
        {"left_inverse", {"(2,2):(5,7)"}, "(2,2,4):(0,1,1)"},
        {"left_inverse", {"(5,3):(5,3)"}, "!shape error|up to 20, that of coordinate 4"},
        {"left_inverse", {"4:-1"}, "4:-1"},
        {"left_inverse", {"(2,3):(-1,-2)"}, "6:-1"},
        {"left_inverse", {"4:-2"}, "!shape error|coordinate 1 below 0"},
        {"left_inverse", {"(2,3):(1,-2)"}, "!shape error|below 0"},
        {"left_inverse", {"(4096,4096):(3,12289)"}, "(3,12289,1366):(0,1,12288)"},
        {"left_inverse",
         {"(100,4096,1024,3):(75497487,6,24576,25165829)"},
         "!shape error|no left inverse"},
        {"left_inverse", {"(1048576,1048576):(1,3145728)"}, "(3145728,1048576):(1,1048576)"},
        {"left_inverse", {"((2,3),4):((1@0@0,1@1@0),1@1)"}, "((2,3),4):((1,2),6)"},
        {"right_inverse", {"((2,3),4):((1@0@0,1@1@0),1@1)"}, "((2,3),4):((1,2),6)"},
        {"right_inverse", {"((2,3),4):((1@0@0,1@1@0),1@0)"}, "!shape error|mix"},
        {"nullspace", {"(4,8,2):(1,0,4)"}, "8:4"},
        /* It ends inside a block of 2^31 offsets. */
        {"max_common_vector",
         {"(2147483648,2147483648):(2147483648,-2147483647)",
          "(2147483649,2147483648):(2147483648,1)"},
         "4294967295"},
        {"max_common_vector", {"(4,8):(1,4)", "(4,8):(1,8)"}, "4"},
        {"max_common_vector", {"(4,8):(1,4)", "(4,8):(1,4)"}, "32"},
        {"max_common_vector", {"(4,8):(8,1)", "(4,8):(1,4)"}, "1"},
        {"max_common_vector", {"(3,4):(1,8)", "12:1"}, "3"},
        {"max_common_vector", {"(4,3):(1,8)", "(6,2):(1,8)"}, "4"},
        {"max_common_vector",
         {"1099511627776:1", "(1099511627775,2):(1,1099511627776)"},
         "1099511627775"},
    };
    RUN(rows);
}

static void divides_and_products(void **state) {
    (void)state;
    const char *a = "(9,(4,8)):(59,(13,1))", *tiler = "[3:3;(2,4):(1,8)]";
    const char *c = "(8,(4,2),6):(1,(8,64),128)";
    const row rows[] = {
        {"logical_divide", {a, tiler}, "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"},
        {"zipped_divide", {a, tiler}, "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"},
        {"tiled_divide", {a, tiler}, "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))"},
        {"flat_divide", {a, tiler}, "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))"},
        {"logical_divide", {a, "(3,4):(1,9)"}, "((3,4),(3,8)):((59,13),(177,1))"},
        {"tiled_divide", {a, "(3,4):(1,9)"}, "((3,4),3,8):((59,13),177,1)"},
        {"flat_divide", {a, "(3,4):(1,9)"}, "(3,4,3,8):(59,13,177,1)"},
        {"logical_divide", {c, "(4,8)"}, "((4,2),((4,2),1),6):((1,4),((8,64),0),128)"},
        {"zipped_divide", {c, "(4,8)"}, "((4,(4,2)),(2,1,6)):((1,(8,64)),(4,0,128))"},
        {"tiled_divide", {c, "(4,(2,2))"}, "((4,(2,2)),2,(2,1),6):((1,(8,64)),4,(16,0),128)"},
        {"flat_divide", {c, "(4,(2,2))"}, "(4,(2,2),2,(2,1),6):(1,(8,64),4,(16,0),128)"},
        {"logical_divide", {c, "(4,_)"}, "((4,2),(4,2),6):((1,4),(8,64),128)"},
        {"logical_divide", {c, "4"}, "(4,(8,12)):(1,(4,64))"},
        {"zipped_divide", {c, "[4:1;_]"}, "((4,1),(2,(4,2),6)):((1,0),(4,(8,64),128))"},
        {"zipped_divide", {"(?,24):(24,1)", "[16:1;8:1]"}, "((16,8),(?,3)):((24,1),(384,8))"},
        {"zipped_divide",
         {"(?{div=32},24):(24,1)", "(16,8)"},
         "((16,8),(?{div=2},3)):((24,1),(384,8))"},
        {"logical_divide", {"(4,?):(1,100)", "8"}, "((4,2),?):((1,100),200)"},
        {"logical_divide", {"?:1", "8:2"}, "(8,(2,?)):(2,(1,16))"},
        {"zipped_divide", {"(8,12):(1@0,1@1)", "(4,3)"}, "((4,3),(2,4)):((1@0,1@1),(4@0,3@1))"},
        {"zipped_divide",
         {"S<3,4,3> o 0 o (8,64):(64,1)", "(4,8)"},
         "S<3,4,3> o 0 o ((4,8),(2,8)):((64,1),(256,8))"},
        /* A tile that does not divide rounds up; on several modes, coalesced first. */
        {"logical_divide", {"10:1", "4"}, "(4,3):(1,4)"},
        {"logical_divide", {"(2,6):(1,2)", "3:1"}, "(3,4):(1,3)"},
        {"logical_divide", {"(5,1):(1,0)", "4"}, "(4,2):(1,4)"},
        {"logical_divide", {"(4,1):(1,1)", "(8,2):(1,8)"}, "(((4,2),2),1):(((1,1),2),0)"},
        {"logical_divide", {"1:1", "8"}, "(8,1):(1,0)"},
        {"logical_divide", {"(6,8):(8,1)", "4"}, "!shape error|carry"},
        {"logical_divide", {"24:1", "(2,2):(1,3)"}, "!shape error|no complement"},
        {"logical_divide", {"(4,2):(1,4)", "(2,2,2)"}, "!shape error|3 modes"},
        {"logical_product", {"(2,5):(5,1)", "(3,4):(1,3)"}, "((2,5),(3,4)):((5,1),(10,30))"},
        {"zipped_product", {"4:1", "(3,4):(1,3)"}, "(4,(3,4)):(1,(4,12))"},
        {"tiled_product", {"(2,5):(5,1)", "(3,4):(1,3)"}, "((2,5),3,4):((5,1),10,30)"},
        {"flat_product", {"(2,5):(5,1)", "(3,4):(1,3)"}, "(2,5,3,4):(5,1,10,30)"},
        {"logical_product", {"(2,5):(5,1)", "[3:1;4:1]"}, "((2,3),(5,4)):((5,1),(1,5))"},
        {"logical_product", {"(4,2):(2,1)", "(?,3):(3,1)"}, "((4,2),(?,3)):((2,1),(24,8))"},
        {"logical_product", {"(4,?):(1,4)", "3:1"}, "!unsupported|static block"},
        {"logical_product", {"4:3", "4:1"}, "!shape error|unevenly"},
        {"logical_product", {"4:0", "2:2305843009213693952"}, "(4,2):(0,2305843009213693952)"},
        {"logical_product",
         {"2147483648:1", "1073741824:2"},
         "(2147483648,1073741824):(1,4294967296)"},
        {"blocked_product", {"(2,5):(5,1)", "(3,4):(1,3)"}, "((2,3),(5,4)):((5,10),(1,30))"},
        {"blocked_product", {"4:1", "(3,4):(1,3)"}, "((4,3),(1,4)):((1,4),(0,12))"},
        {"blocked_product",
         {"(2,(2,3)):(1,(2,4))", "(3,4):(1,3)"},
         "((2,3),((2,3),4)):((1,12),((2,4),36))"},
        {"blocked_product", {"2:2", "8:1"}, "((2,(2,4))):((2,(1,4)))"},
        {"blocked_product", {"(4):(2)", "4:1"}, "((4,(2,2))):((2,(1,8)))"},
        {"raked_product", {"2:2", "8:1"}, "((2,4,2)):((1,4,2))"},
        {"raked_product", {"(2,5):(5,1)", "(3,4):(1,3)"}, "((3,2),(4,5)):((10,5),(30,1))"},
        {"raked_product", {"4:1", "(3,4):(1,3)"}, "((3,4),4):((4,1),12)"},
        {"raked_product", {"(2,(2,3)):(1,(2,4))", "(3,4):(1,3)"}, "((3,2),(4,6)):((12,1),(36,2))"},
        {"tile_to_shape",
         {"(8,64):(64,1)", "(128,128)", "(0,1)"},
         "((8,16),(64,2)):((64,512),(1,8192))"},
        {"tile_to_shape",
         {"(8,64):(64,1)", "(128,128,3)", "(2,1,0)"},
         "((8,16),(64,2),(1,3)):((64,3072),(1,1536),(0,512))"},
        {"tile_to_shape", {"(8,8):(8,1)", "(20,20)", "(1,0)"}, "((8,3),(8,3)):((8,192),(1,64))"},
        {"tile_to_shape",
         {"(8,(2,4)):(1,(8,16))", "(16,(4,8))", "(0,1)"},
         "((8,2),((2,4),4)):((1,64),((8,16),128))"},
        {"tile_to_shape",
         {"(8,8):(8,1)", "(?,?{i64})", "(0,1)"},
         "((8,?),(8,?{i64})):((8,64),(1,?{div=64}))"},
        {"tile_to_shape",
         {"S<3,4,3> o 0 o (8,64):(64,1)", "(16,128)", "(0,1)"},
         "S<3,4,3> o 0 o ((8,2),(64,2)):((64,512),(1,1024))"},
        {"tile_to_shape", {"(8,8):(8,1)", "16"}, "!shape error|1 modes"},
        {"local_tile", {"(32,24):(1@0,1@1)", "(16,8)", "(1,2)"}, "(16,8):(1@0,1@1)"},
        {"local_tile_offset", {"(32,24):(1@0,1@1)", "(16,8)", "(1,2)"}, "(16,16)"},
        {"local_tile", {"(32,24):(24,1)", "(16,8)", "(1,_)"}, "(16,8,3):(24,1,8)"},
        {"local_tile_offset", {"(32,24):(24,1)", "(16,8)", "(1,_)"}, "384"},
        {"local_tile",
         {"S<3,4,3> o 0 o (32,24):(24,1)", "(16,8)", "(1,2)"},
         "S<3,4,3> o 400 o (16,8):(24,1)"},
        {"local_partition", {"(32,24):(24,1)", "(4,8):(8,1)", "9"}, "(8,3):(96,8)"},
        {"local_partition_offset", {"(32,24):(24,1)", "(4,8):(8,1)", "9"}, "25"},
        {"local_partition", {"(32,24):(24,1)", "(4,8):(8,1)", "32"}, "!index error|thread 32"},
        {"local_partition_offset", {"(8,8):(8,1)", "(2,2):(2,3)", "5"}, "9"},
        {"local_partition_offset", {"(8,8):(8,1)", "(2,2):(2,3)", "4"}, "!index error|thread 4"},
    };
    RUN(rows);
}

static void tuples(void **state) {
    (void)state;
    static const row rows[] = {
        {"shape_div", {"(6,4)", "12"}, "(1,2)"},
        {"shape_div", {"(6,4)", "(2,8)"}, "(3,1)"},
        {"shape_div", {"(6,4)", "4"}, "!shape error|divides"},
        {"ceil_div", {"(6,5)", "(4,2)"}, "(2,3)"},
        {"ceil_div", {"(?{div=16},?)", "(4,8)"}, "(?{div=4},?)"},
        {"ceil_div", {"(0,5)", "(4,2)"}, "(0,3)"},
        {"tuple_add", {"(1,(2,3))", "(4,(5,6))"}, "(5,(7,9))"},
        {"tuple_sub", {"(1,(2,3))", "(4,(5,6))"}, "(-3,(-3,-3))"},
        {"tuple_add", {"(1,2)", "3"}, "!shape error|structures"},
        {"tuple_product", {"(2,(3,4))"}, "24"},
        {"tuple_product_each", {"(2,(3,4))"}, "(2,12)"},
        {"size", {"(?{div=4},?{div=16},3)"}, "?{div=192}"},
        {"size", {"(?{div=4},?{i64},3)"}, "?{i64 div=12}"},
    };
    RUN(rows);
}

static void limits(void **state) {
    (void)state;
    static const row rows[] = {
        {"size", {"(4294967296,4294967296):(0,0)"}, "!overflow|2^63"},
        {"size", {"(4294967296,4294967296)"}, "!overflow|64 bits"},
        {"size", {"(4294967296,2147483647):(0,0)"}, "9223372032559808512"},
        {"cosize", {"(4294967296):(4294967296)"}, "!overflow|2^63"},
        {"eval", {"2:4611686018427387904", "2"}, "!overflow|64 bits"},
        {"eval", {"(2,2):(1,2)", "-1"}, "!index error|negative"},
        {"eval", {"2:3", "-1"}, "-3"},
        {"eval", {"(2,2):(1,2)", "(1,1,1)"}, "!shape error|3 modes"},
        {"logical_product", {"4294967296:1", "4294967296:1"}, "!overflow|64 bits"},
        {"make_layout", {"(4,0)"}, "!shape error|at least 1"},
        {"recast_layout", {"1", "4611686018427387904", "4:2"}, "!overflow|"},
        {"composition", {"4:4611686018427387904", "2:2"}, "!overflow|2^63"},
        {"composition", {"2:4611686018427387903", "2:3"}, "!overflow|64 bits"},
        {"make_identity_layout", {"((((((1))))))"}, "!overflow|levels"},
        {"no_such_operation", {"4:1"}, "!not found|no_such_operation"},
        {"size", {"4:1", "4:1"}, "!invalid argument|takes 1 argument"},
        {"coalesce", {"4"}, "!invalid argument|expected a layout"},
        {"coalesce", {"[4:1]"}, "!invalid argument|expected a layout"},
        {"get", {"(4,2):(1,4)", "2"}, "!axis error|2 modes"},
        {"select", {"(4,2):(1,4)", "(0,5)"}, "!axis error|mode"},
        {"group", {"(4,2):(1,4)", "1", "3"}, "!axis error|rank 2"},
    };
    RUN(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference),
        cmocka_unit_test(looks),
        cmocka_unit_test(makes),
        cmocka_unit_test(rearranges),
        cmocka_unit_test(composes),
        cmocka_unit_test(complements_and_inverses),
        cmocka_unit_test(divides_and_products),
        cmocka_unit_test(tuples),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
