def cup(s,rng):
    w,d,h=s.size; r=w/2
    s.lathe("plain#3070c0",[(0,0),(.7*r,0),(r,h),(.92*r,h),(.62*r,.04*h),(0,.04*h)])
    s.solid_capsule((0,0,0),(0,0,h),r*.9)
def drawer(s,rng):
    w,d,h=s.size
    s.box("wood#b58a50",(0,0,.01),(w,d,.02))
    m=s.slide((0,1,0),d*.8)
    m.box("plain#eeeeee",(0,d/2-.01,h/2),(w,.02,h))
    m.box("wood#b58a50",(0,0,.03),(w*.9,d*.9,.02))
    m.space((0,0,h/2),(w*.9,d*.9,h*.8))
    m.support((0,0,.04),(w*.9,d*.9))
