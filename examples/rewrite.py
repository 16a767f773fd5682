"""A pass of the host: replaces silu by its definition, then runs inside the default pipeline of a build."""
import array

import relax


@relax.host_pass
def expand_silu(m):
    """silu(x) -> x * sigmoid(x)"""
    for f in m.functions:
        for v in [] if f.is_prim else f.values():
            if v.op == "silu":
                with v.before():                           # operators in here stand in front of v
                    x = v.args[0]
                    v.replace(x * relax.sigmoid(x))
                v.remove()


m = relax.Module.parse("""
fn f(x: Tensor((n,), f32)) -> Tensor((n,), f32) {
  y = silu(x)
  return y
}""")
p = relax.Pipeline("normalize,dce")
p.insert_after("normalize", expand_silu)
print(p)
p.run(m)
print(m)

p = relax.Pipeline("default")
p.insert_before("legalize", expand_silu)
exe = relax.build(m, pipeline=p)
print([round(v, 4) for v in exe["f"](array.array("f", [-1, 0, 1])).tolist()])
