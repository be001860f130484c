local x = waited / runtime
if class == "llm" then return x * pods end
return pow(x, 3) * processors -- wfp3
